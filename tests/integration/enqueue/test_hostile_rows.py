"""Rows that somebody wrote by hand into the outbox of the queue's own file: none stops a claim, or a neighbour."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenes.enqueue_place import MAIL, Place
from typer.testing import CliRunner

import tailrace
from tailrace.cli import app
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.sqlite import queue as sqlite_queue
from tailrace.stores.sqlite.file import SqliteFile

NOT_UTF8, WITH_NUL = "CAST(x'61ff62' AS TEXT)", "'a' || char(0) || 'b'"
#: A value of one column, and words of the reason.
HOSTILE = [
    ("due_at = 9e999", "due_at is inf"),
    ("due_at = -9e999", "due_at is -inf"),
    ("due_at = 1e300", "due is 1e+300"),
    ("expires_at = 9e999", "expires_at is inf"),
    ("expires_at = 1e18", "seconds since 1970"),
    ("token = CAST(x'ff' || 'ffffffffffffffffffffffffffffffff' AS TEXT)", "token is not valid UTF-8"),
    (f"function = {NOT_UTF8}", "function is not valid UTF-8: 'a\\udcffb'"),
    (f"function = {WITH_NUL}", "function is 'a\\x00b'"),
    ("function = 'tailrace.callback'", "as only the platform's own do"),
    (f"collection = {NOT_UTF8}", "collection is not valid UTF-8"),
    (f"tenant = {NOT_UTF8}", "tenant is not valid UTF-8"),
    (f"key = {NOT_UTF8}", "key is not valid UTF-8"),
    (f"key = {WITH_NUL}", "a NUL"),
    (f"dedupe_key = {NOT_UTF8}", "dedupe_key is not valid UTF-8"),
    ("dedupe_key = char(0) || hex(zeroblob(100000))", "a NUL"),
    (f"headers = {NOT_UTF8}", "headers is not valid UTF-8"),
    (f"headers = {WITH_NUL}", "headers: "),
    ('headers = \'[["a", "\\ud800"]]\'', "headers: "),
    ("headers = char(0) || hex(zeroblob(100000))", "headers have 200001 characters"),
    ("priority = -1", "priority is -1"),
    ("priority = 9223372036854775807", "priority is 9223372036854775807"),
]
EVERYBODY = [b'{"to":"one"}', b'{"to":"two"}', b'{"to":"three"}']


def written_by_hand(place: Place, *changes: str) -> sqlite3.Connection:
    """Writes three rows with a key, and one between each two of them that is changed so."""
    connection = sqlite3.connect(place.address)
    connection.execute("PRAGMA ignore_check_constraints = 1")
    tailrace.enqueue(connection, MAIL, arguments={"to": "one"}, key="ann")
    for change in changes:
        row = tailrace.enqueue(connection, MAIL, arguments={"to": "wrong"})
        connection.execute(f"UPDATE tailrace_outbox SET {change} WHERE token = ?", (row.token,))
    tailrace.enqueue(connection, MAIL, arguments={"to": "two"}, key="ann")
    tailrace.enqueue(connection, MAIL, arguments={"to": "three"}, key="ann")
    connection.commit()
    return connection


async def in_turn(place: Place) -> list[bytes]:
    """Takes payloads until none comes, settling each batch before the next."""
    came: list[bytes] = []
    while items := await place.arrived():
        came += [item["payload"] for item in items]
        await place.done(items)
    return came


@pytest.mark.parametrize(("change", "words"), HOSTILE)
async def test_one_hand_written_row_stops_no_claim_and_says_what_is_wrong(
    on_sqlite: Place, change: str, words: str
) -> None:
    # Given a row that is no workload, between others
    written_by_hand(on_sqlite, change).close()
    # When claims are made
    came = await in_turn(on_sqlite)
    # Then the others come in their order
    assert came == EVERYBODY
    # And it is listed with the reason
    listed = await asyncio.to_thread(CliRunner().invoke, app, ["outbox", "list", on_sqlite.address])
    assert listed.exit_code == 0 and "0 wait, 1 were set aside" in listed.output, listed.output
    with sqlite3.connect(on_sqlite.address) as connection:
        [(reason,)] = connection.execute("SELECT reason FROM tailrace_outbox").fetchall()
    connection.close()
    assert words in reason


async def test_all_of_them_at_once_are_set_aside_over_a_restart_and_come_back_when_mended(on_sqlite: Place) -> None:
    # Given all of them in the file of a queue that was closed, and reasons that are no texts either
    written_by_hand(on_sqlite, *[change for change, _ in HOSTILE], f"reason = {NOT_UTF8}").close()
    await on_sqlite.queue.close()
    file = SqliteFile(Path(on_sqlite.address), sqlite_queue.SCHEMA, name="again")
    await file.open()
    place = Place(sqlite_queue.SqliteQueue(file, StoresConfig()), on_sqlite.address)
    try:
        await place.queue.open()
        # When claims are made
        assert await in_turn(place) == EVERYBODY
        # Then all are set aside, and listed
        listed = await asyncio.to_thread(CliRunner().invoke, app, ["outbox", "list", place.address])
        assert f"0 wait, {len(HOSTILE) + 1} were set aside" in listed.output
        assert "a\ufffdb" in listed.output or "a\\udcffb" in listed.output
        # And once they are mended, they come
        with sqlite3.connect(place.address) as connection:
            connection.execute("DELETE FROM tailrace_outbox WHERE place > 3")
            connection.execute(f"UPDATE tailrace_outbox SET due_at = 0, function = '{MAIL}'")
        connection.close()
        again = await asyncio.to_thread(CliRunner().invoke, app, ["outbox", "retry", place.address])
        assert "2 rows are taken again" in again.output, again.output
        assert await in_turn(place) == [b'{"to":"wrong"}', b'{"to":"wrong"}']
    finally:
        await file.close()


async def test_a_row_that_only_the_queue_s_own_tables_refuse_is_set_aside_too(on_sqlite: Place) -> None:
    # Given rows that fail when they are stored, more than one step tries, among others
    connection = written_by_hand(on_sqlite, *['headers = \'[["a", "b"]]\''] * 6)
    connection.execute(
        "CREATE TRIGGER odd BEFORE INSERT ON entities WHEN new.headers <> '' BEGIN SELECT RAISE(ABORT, 'odd'); END"
    )
    connection.commit()
    # When claims are made
    came = [payload for _ in range(3) for payload in await in_turn(on_sqlite)]
    # Then the others come once each, in their order, and the counts are right
    assert came == EVERYBODY
    assert [reason for (reason,) in connection.execute("SELECT reason FROM tailrace_outbox")] == ["odd"] * 6
    connection.close()
    counts = await on_sqlite.queue.counts()
    assert (counts["success"], counts["new"]) == (3, 0)


async def test_a_place_beyond_all_others_is_refused_for_whoever_enqueues_next(on_sqlite: Place) -> None:
    connection = sqlite3.connect(on_sqlite.address)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"INSERT INTO tailrace_outbox (place, function) VALUES (9223372036854775807, '{MAIL}')")
    tailrace.enqueue(connection, MAIL, arguments={"to": "one"})
    connection.commit()
    connection.close()
    assert await in_turn(on_sqlite) == [b'{"to":"one"}']


any_value: Any = st.one_of(
    st.binary(max_size=40).map(lambda data: f"CAST(x'{data.hex()}' AS TEXT)"),
    st.floats(allow_nan=False).map(lambda number: "9e999" if number > 1e308 else repr(number).replace("inf", "9e999")),
    st.integers(-(1 << 63) + 1, (1 << 63) - 1).map(str),
)


@given(rows=st.lists(st.tuples(st.sampled_from(["token", "function", "payload", "priority", "collection", "tenant",
    "key", "dedupe_key", "headers", "due_at", "expires_at"]), any_value), min_size=1, max_size=6))  # fmt: skip
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_written_the_neighbours_come(on_sqlite: Place, rows: list[tuple[str, str]]) -> None:
    # Given rows with any value in any column that takes it
    connection = sqlite3.connect(on_sqlite.address)
    connection.execute("PRAGMA ignore_check_constraints = 1")
    for column, value in rows:
        row = tailrace.enqueue(connection, MAIL, arguments={"to": "wrong"})
        try:
            connection.execute(f"UPDATE tailrace_outbox SET {column} = {value} WHERE token = ?", (row.token,))
        except sqlite3.Error:
            connection.execute("DELETE FROM tailrace_outbox WHERE token = ?", (row.token,))
    tailrace.enqueue(connection, MAIL, arguments={"to": "right"})
    connection.commit()
    connection.close()
    # When claims are made
    came = [payload for _ in range(2) for payload in await in_turn(on_sqlite)]
    # Then what is a workload comes, and nothing waits in the outbox
    assert came.count(b'{"to":"right"}') == 1
    with sqlite3.connect(on_sqlite.address) as connection:
        assert connection.execute("SELECT count(*) FROM tailrace_outbox WHERE reason = ''").fetchone() == (0,)
    connection.close()
