"""Outboxes in SQLite and PostgreSQL: every committed row becomes one item, whichever process dies when."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

import tailrace
from tailrace.cli import app
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import NotConnected, Overloaded
from tailrace.model.function_spec import FunctionSpec
from tailrace.tailers.registry import kind_of
from tailrace.testing.crash_points import Crash

sys.path.insert(0, str(Path(__file__).parent))
from relaying import POINTS, Dying, Node, pump

ANY = Demand({Cell(name, priority): 1000 for name in ("mail", "late") for priority in range(4)}, frozenset(), 1000)


class Business:
    """A database of somebody's own, with an outbox in it."""

    def __init__(self, address: str, table: str, connect: Any) -> None:
        self.address, self.table, self.connect = address, table, connect
        self.keys = {"database": address, "table": table, "batch": 5}

    def leave(self, *numbers: int, function: str = "mail", **options: Any) -> None:
        connection = self.connect()
        for number in numbers:
            tailrace.enqueue(connection, function, arguments={"n": number}, outbox=self.table, **options)
        connection.commit()
        connection.close()

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        connection = self.connect()
        cursor = connection.execute(statement.replace("OUTBOX", self.table))
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
        connection.close()
        return rows


@pytest.fixture(params=["sqlite", "postgres"])
async def business(request: pytest.FixtureRequest, tmp_path: Path) -> Business:
    if request.param == "sqlite":
        return await in_sqlite(tmp_path)
    else:
        url, schema = request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_schema")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        return await made(Business(url, f"{schema}.events", lambda: psycopg.connect(url)))


async def in_sqlite(folder: Path) -> Business:
    return await made(Business(str(folder / "app.db"), "tailrace_outbox", lambda: sqlite3.connect(folder / "app.db")))


async def made(business: Business) -> Business:
    kind = kind_of("outbox")
    outbox = kind.build(kind.options.model_validate(business.keys), None)
    await outbox.open()
    await outbox.create()
    await outbox.close()
    return business


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with Node(tmp_path / "node.db") as node:
        await node.control.register([FunctionSpec("mail")])
        yield node


async def relayed(node: Node, business: Business) -> None:
    """Carries over all rows that are there."""
    relay = pump(node, None, business.keys)
    idle = 0
    while idle < 2:  # it pauses also after what another one handed over
        idle = 0 if await relay.turn() else idle + 1
    await relay.source.close()


async def arrived(node: Node) -> list[bytes]:
    leased = await node.queue.lease(ANY, 30, 0)
    return [] if leased is None else list(leased.payloads)


def numbered(*numbers: int) -> list[bytes]:
    return [b'{"n":%d}' % number for number in numbers]


async def test_committed_rows_become_items_in_their_order_and_are_gone(node: Node, business: Business) -> None:
    # Given rows that were committed, and others that were rolled back
    business.leave(*range(12))
    connection = business.connect()
    tailrace.enqueue(connection, "mail", arguments={"n": 99}, outbox=business.table)
    connection.rollback()
    connection.close()
    # When they are carried over, twice
    await relayed(node, business)
    await relayed(node, business)
    # Then each is an item once
    assert await arrived(node) == numbered(*range(12))
    assert business.run("SELECT count(*) FROM OUTBOX") == [(0,)]


async def test_a_death_at_any_step_loses_nothing_and_repeats_nothing(node: Node, business: Business) -> None:
    def die() -> None:
        raise Crash

    for round, (call, after) in enumerate(POINTS):
        # Given two batches and a row that no queue takes
        first = 10 * round
        business.leave(*range(first, first + 8))
        [(odd,)] = business.run("SELECT min(place) + 2 FROM OUTBOX WHERE reason = ''")
        business.run(f"UPDATE OUTBOX SET headers = 'not JSON' WHERE place = {odd}")
        # When the relay dies around this step
        dying = Dying(pump(node, None, business.keys).source, call, after, die)
        relay = pump(node, dying, business.keys, Dying(node.queue, call, after, die))
        with pytest.raises(Crash):
            await relay.turn()
        await dying.close()
        # Then the next one brings all to an end, each once
        await relayed(node, business)
        assert await arrived(node) == numbered(*[first + n for n in range(8) if n != 2]), (call, after)
        [(place, reason)] = business.run("SELECT place, reason FROM OUTBOX ORDER BY place DESC LIMIT 1")
        assert place == odd and reason.startswith("headers: ")


async def test_a_process_that_is_killed_around_each_step_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    # Given rows, of which one is refused, and a program that is killed again and again while it carries them
    business = await in_sqlite(tmp_path)
    business.leave(*range(50))
    business.run("UPDATE OUTBOX SET headers = 'not JSON' WHERE place = 30")
    async with Node(tmp_path / "node.db") as node:
        await node.control.register([FunctionSpec("mail")])
    program = str(Path(__file__).with_name("relaying.py"))
    command = [sys.executable, program, business.address, str(tmp_path / "node.db")]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    assert said.decode().splitlines() == [f"{call} {after}" for call, after in POINTS]
    # Then what is left is carried by the next one, and every row is there once
    async with Node(tmp_path / "node.db") as node:
        await relayed(node, business)
        assert await arrived(node) == numbered(*[n for n in range(50) if n != 29])
        assert (await node.queue.tally()).states["enqueued"] == 49


async def test_a_row_that_is_committed_later_than_a_higher_one_is_not_passed(
    node: Node, postgres_server: str, postgres_schema: str
) -> None:
    # Given a row whose transaction is still open while a later one is committed and carried over
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_schema}".encode())
    business = Business(postgres_server, f"{postgres_schema}.events", lambda: psycopg.connect(postgres_server))
    ready = await asyncio.to_thread(
        CliRunner().invoke, app, ["outbox", "create", business.address, "--table", business.table]
    )
    assert ready.exit_code == 0 and ready.output.endswith("ready\n"), ready.output
    with psycopg.connect(postgres_server) as slow:
        tailrace.enqueue(slow, "mail", arguments={"n": 1}, outbox=business.table)
        business.leave(2)
        await relayed(node, business)
        assert await arrived(node) == numbered(2)
        # When it commits after all
        slow.commit()
    # Then it is carried over too
    await relayed(node, business)
    assert await arrived(node) == numbered(1)


async def test_two_relays_at_once_make_one_item_of_each_row(node: Node, business: Business) -> None:
    business.leave(*range(20), key="k")
    await asyncio.gather(*(relayed(node, business) for _ in range(3)))
    assert (await node.queue.tally()).taken == 20
    assert await arrived(node) == numbered(0)  # the head of the key


async def test_what_waits_for_its_function_holds_up_only_its_key(node: Node, business: Business) -> None:
    # Given rows of a function that nobody has registered, with a key or without, before others
    business.leave(1, function="late", key="ann")
    business.leave(2, key="ann")
    business.leave(*range(10, 22), function="late")
    business.leave(3, 4)
    # When they are carried over
    await relayed(node, business)
    # Then the others pass, and nothing of the waiting one's key does
    assert await arrived(node) == numbered(3, 4)
    assert business.run("SELECT count(*) FROM OUTBOX WHERE reason = ''") == [(14,)]
    # And when a worker registers it, all come, in the order of the key
    await node.control.register([FunctionSpec("late")])
    await relayed(node, business)
    assert sorted(await arrived(node)) == sorted(numbered(1, *range(10, 22)))


async def test_rows_that_are_refused_are_listed_and_taken_again_when_asked(node: Node, business: Business) -> None:
    # Given a row that somebody wrote by hand, wrongly, among others
    business.leave(1, 2, 3)
    business.run("UPDATE OUTBOX SET dedupe_key = 'submission:mine' WHERE place = 2")
    await relayed(node, business)
    assert await arrived(node) == numbered(1, 3)
    # Then it is listed with the reason
    where = [business.address, "--table", business.table]
    listed = await asyncio.to_thread(CliRunner().invoke, app, ["outbox", "list", *where])
    assert "0 wait, 1 were set aside" in listed.output and "as only the platform's own may" in listed.output
    # And taken again when it was mended
    business.run("UPDATE OUTBOX SET dedupe_key = '' WHERE place = 2")
    again = await asyncio.to_thread(CliRunner().invoke, app, ["outbox", "retry", *where])
    assert "1 rows are taken again" in again.output
    await relayed(node, business)
    assert await arrived(node) == numbered(2)


async def test_while_the_queue_or_the_outbox_is_away_rows_wait(node: Node, business: Business) -> None:
    business.leave(1)

    class Full:
        async def submit(self, items: Any) -> Any:
            raise Overloaded("full", 1.0)

    relay = pump(node, None, business.keys, Full())
    with pytest.raises(Overloaded):
        await relay.turn()
    assert relay.status()[:2] == ("clogged", "full") and relay.status().facts.store == "full"
    await relay.source.close()
    missing = pump(node, None, {**business.keys, "table": "nothing"})
    with pytest.raises(NotConnected, match="tailrace outbox create"):
        await missing.turn()
    assert missing.status().state == "disconnected"
    await missing.source.close()
    await relayed(node, business)
    assert await arrived(node) == numbered(1)


async def test_a_relay_runs_pauses_and_drains_as_a_tailer(node: Node, business: Business) -> None:
    relay = pump(node, None, {**business.keys, "poll": 0.01})
    relay.pause(True)
    running = asyncio.create_task(relay.run())
    business.leave(1)
    await asyncio.sleep(0)
    assert relay.status().state == "paused"
    relay.pause(False)
    async with asyncio.timeout(10):
        while relay.counts.settled < 1:
            await asyncio.sleep(0.005)
    assert await relay.drain(5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await arrived(node) == numbered(1)


NOT_UTF8 = "CAST(x'61ff' AS TEXT)"
#: By engine: values of one column that its table takes, with words of the reason.
HOSTILE = {
    "sqlite": [
        (f"key = {NOT_UTF8}", "key is not valid UTF-8"),
        (f"function = {NOT_UTF8}", "function is not valid UTF-8"),
        (f"headers = {NOT_UTF8}", "headers is not valid UTF-8"),
        ("due_at = 9e999", "due_at is inf"),
        ("due_at = 1e300", "due is 1e+300"),
        ("function = 'a' || char(0)", "function is 'a"),
        ("token = replace(hex(zeroblob(16)), '0', 'z')", "token is 'zzzz"),
        ("priority = -1", "priority is -1"),
        ("headers = '[[\"a\", 9e999]]'", "headers: "),
        ("expires_at = 9e999", "expires_at is inf"),
        ("dedupe_key = 'a' || char(0)", "a NUL"),
    ],
    "postgres": [
        ("due_at = 'infinity'", "due_at is inf"),
        ("due_at = 'nan'", "due_at is nan"),
        ("expires_at = 'nan'", "expires_at is nan"),
        ("due_at = 1e300", "due is 1e+300"),
        ("headers = '[[\"a\", NaN]]'", "headers: "),
        ('headers = \'[["a", "\\ud800"]]\'', "headers: "),
    ],
}


async def test_rows_that_are_no_workloads_stop_no_other_and_say_what_is_wrong(node: Node, business: Business) -> None:
    # Given such rows among others, of one key, more of them than are carried at once
    hostile = HOSTILE["postgres" if "://" in business.address else "sqlite"]
    business.leave(0, key="ann")
    for number, (change, _) in enumerate(hostile, 1):
        business.leave(1000 + number)
        with contextlib.closing(business.connect()) as connection:
            if "://" not in business.address:
                connection.execute("PRAGMA ignore_check_constraints = 1")
            which = f"(SELECT max(place) FROM {business.table})"
            connection.execute(f"UPDATE {business.table} SET {change} WHERE place = {which}")
            connection.commit()
        business.leave(number, key="ann")
    # When they are carried over
    await relayed(node, business)
    # Then the others come, in the order of their key
    came = []
    while leased := await node.queue.lease(ANY, 30, 0):
        came += leased.payloads
        await node.queue.settle(leased.fence, leased.ids, [])
    assert came == numbered(*range(len(hostile) + 1))
    # And each of these is set aside with its reason, and shown
    reasons = [reason for (reason,) in business.run("SELECT reason FROM OUTBOX ORDER BY place")]
    assert len(reasons) == len(hostile)
    for reason, (change, words) in zip(reasons, hostile, strict=True):
        assert words in reason, change
    where = [business.address, "--table", business.table]
    listed = await asyncio.to_thread(CliRunner().invoke, app, ["outbox", "list", *where])
    assert f"0 wait, {len(hostile)} were set aside" in listed.output, listed.output


async def test_a_database_without_an_encoding_gives_rows_one_by_one(node: Node, postgres_server: str) -> None:
    # Given a database that takes any bytes for a text, and rows there, one of which is not UTF-8
    name = "any_bytes"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0".encode()
        )
    url = f"{postgres_server.rpartition('/')[0]}/{name}"
    try:
        for encoding in ("", "?client_encoding=utf8"):
            business = Business(
                url + encoding, "tailrace_outbox", lambda: psycopg.connect(f"{url}?client_encoding=utf8")
            )
            await made(business)
            business.run("DELETE FROM OUTBOX")
            business.leave(1)
            business.leave(2, key=f"é{encoding}")
            business.leave(3)
            business.run("UPDATE OUTBOX SET key = convert_from('\\x61ff'::bytea, 'SQL_ASCII') WHERE place % 3 = 0")
            # When they are carried over
            await relayed(node, business)
            # Then the others come, and that one says what is wrong
            assert sorted(await arrived(node)) == numbered(1, 2), encoding
            [(reason,)] = business.run("SELECT reason FROM OUTBOX")
            assert "UTF" in reason
            where = [business.address, "--table", business.table]
            listed = await asyncio.to_thread(CliRunner().invoke, app, ["outbox", "list", *where])
            assert "0 wait, 1 were set aside" in listed.output, listed.output
    finally:
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


async def test_a_row_that_its_table_lets_nobody_set_aside_holds_up_no_other(node: Node, business: Business) -> None:
    # Given a row that is no workload, in a table with a rule of its owner's against what would say so
    business.leave(1, 2, 3)
    business.run("UPDATE OUTBOX SET headers = 'not JSON' WHERE place = 2")
    if "://" in business.address:
        business.run("ALTER TABLE OUTBOX ADD CHECK (reason = '')")
    else:
        business.run(
            "CREATE TRIGGER odd BEFORE UPDATE ON OUTBOX WHEN new.reason <> '' BEGIN SELECT RAISE(ABORT, 'odd'); END"
        )
    # When they are carried over
    relay = pump(node, None, business.keys)
    for _ in range(2):
        with pytest.raises(NotConnected, match="row 2 is no workload and cannot be set aside"):
            await relay.turn()
    # Then the others have come and are gone, and the tailer says which one is left
    assert await arrived(node) == numbered(1, 3)
    assert business.run("SELECT place FROM OUTBOX") == [(2,)]
    assert relay.status().state == "disconnected" and "row 2" in relay.status().detail
    await relay.source.close()
