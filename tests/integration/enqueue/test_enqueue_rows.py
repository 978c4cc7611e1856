"""Rows that `tailrace.enqueue` leaves behind, with all that was said, of which none holds up another; or a refusal."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
from scenes.enqueue_place import ANY, MAIL, Place, send_confirmation

import tailrace
from tailrace.model.errors import ConfigError, InvalidPayload, InvalidRequest


async def test_options_come_through(on_postgres: Place) -> None:
    # Given rows with everything that can be said of them
    schema = on_postgres.schema
    with psycopg.connect(on_postgres.address) as connection:

        def leave(to: str, **options: Any) -> None:
            tailrace.enqueue(connection, MAIL, arguments={"to": to}, schema=schema, **options)

        leave("first", key="ann", headers={"trace": "é"}, priority="reporting", expires_after="1h", tenant="acme")
        leave("second", key="ann", priority="reporting", tenant="acme")
        leave("others", key="ann", dedupe_key="welcome-ann", tenant="beta")
        leave("later", delay="1h")
        leave("over", expires_after=0)
        leave("once", dedupe_key="welcome-ann", collection="welcome")
        leave("twice", dedupe_key="welcome-ann")
    # When they have arrived
    found = {item["payload"]: item for item in await on_postgres.arrived()}
    # Then one of a tenant's key, none too early or too late, none of a tenant twice
    assert sorted(found) == [b'{"to":"first"}', b'{"to":"once"}', b'{"to":"others"}']
    first, once = found[b'{"to":"first"}'], found[b'{"to":"once"}']
    assert (first["kind"].priority, first["kind"].tenant, first["extra"].key) == (3, "acme", "ann")
    assert first["extra"].headers == (("trace", "é"),)
    assert once["kind"].collection == "welcome"
    counts = await on_postgres.queue.counts()
    assert (counts["new"], counts["expired"]) == (2, 1)
    # And the second of the key comes when the first is done
    await on_postgres.done([first])
    assert [item["payload"] for item in await on_postgres.arrived()] == [b'{"to":"second"}']


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("[]", None),
        ("[ ]", None),
        ('[ ["a", "b"]]', (("a", "b"),)),
        ('[\n  ["a",\n   "b"]\n]\n', (("a", "b"),)),
        ('[["a","b"],["a","c"]]', (("a", "b"), ("a", "c"))),
    ],
)
async def test_headers_may_be_written_as_json_may_be(on_postgres: Place, headers: str, expected: Any) -> None:
    # Given a row whose headers somebody's own statement wrote, and another one behind it
    with psycopg.connect(on_postgres.address) as connection:
        connection.execute(
            f"SELECT {on_postgres.schema}.enqueue(%s, %s, headers => %s)", (MAIL, b'{"to":"odd"}', headers)
        )
        tailrace.enqueue(connection, MAIL, arguments={"to": "next"}, schema=on_postgres.schema)
    # When both are claimed
    await on_postgres.queue.sweep()
    leased = await on_postgres.queue.lease(ANY, 30, 0)
    assert leased is not None
    # Then the headers are what they say, and neither is taken for an item of a job
    odd = leased.extras.get(leased.payloads.index(b'{"to":"odd"}'))
    assert (odd.headers if odd else None) == expected
    assert len(leased.ids) == 2 and list(leased.jobs) == []


async def test_what_one_transaction_leaves_keeps_its_order(on_postgres: Place) -> None:
    # Given rows of one key, and of one dedupe key, whose ids fall, as those of one millisecond may
    schema = on_postgres.schema
    with psycopg.connect(on_postgres.address) as connection:
        for number in range(8):
            tailrace.enqueue(connection, MAIL, schema=schema, key="ann", arguments={"to": f"{number}"})
            tailrace.enqueue(connection, MAIL, schema=schema, dedupe_key="x", arguments={"to": f"twin {number}"})
        connection.execute(
            f"UPDATE {schema}.outbox SET id = (SELECT max(id) FROM {schema}.outbox) + 1000 - place".encode()
        )
    # When they have arrived, and each of the key is done before the next one comes
    came: list[bytes] = []
    while items := await on_postgres.arrived():
        came += [item["payload"] for item in items]
        await on_postgres.done(items)
    # Then those of the key came in their order, and of the dedupe key the first alone
    came.sort(key=lambda payload: b"twin" in payload)
    assert came == [*(b'{"to":"%d"}' % number for number in range(8)), b'{"to":"twin 0"}']


async def test_a_transaction_that_stays_open_holds_up_nobody(on_postgres: Place) -> None:
    schema = on_postgres.schema
    async with await psycopg.AsyncConnection.connect(on_postgres.address) as slow:
        # Given a transaction that enqueued for a key and a new kind, and stays open
        await tailrace.enqueue(slow, MAIL, schema=schema, key="ann", tenant="new", dedupe_key="x")
        # When others enqueue and end items of the same
        async with await psycopg.AsyncConnection.connect(on_postgres.address) as quick:
            await tailrace.enqueue(quick, MAIL, schema=schema, key="ann", tenant="new", dedupe_key="x")
        async with asyncio.timeout(5):
            items = await on_postgres.arrived()
            await on_postgres.done(items)
        assert len(items) == 1
    # Then the slow one's comes too (here: is known to be the same)
    assert await on_postgres.arrived() == []
    assert (await on_postgres.queue.counts())["success"] == 1


async def test_a_row_that_cannot_be_moved_is_set_aside_and_holds_up_no_other(on_postgres: Place) -> None:
    # Given a row larger than this queue takes, one of the platform's own, and one whose id is taken, among others
    schema = on_postgres.schema
    with psycopg.connect(on_postgres.address) as connection:
        first = tailrace.enqueue(connection, MAIL, schema=schema, arguments={"to": "one"})
        connection.commit()
        await on_postgres.queue.sweep()
        tailrace.enqueue(connection, MAIL, schema=schema, arguments={"to": "large" * 20_000})
        tailrace.enqueue(connection, "tailrace.callback", schema=schema, arguments={"url": "https://a.example.org"})
        taken = tailrace.enqueue(connection, MAIL, schema=schema, arguments={"to": "two"})
        connection.execute(
            f"UPDATE {schema}.outbox SET id = %s WHERE id = %s".encode(), (int(first.id, 16), int(taken.id, 16))
        )
        tailrace.enqueue(connection, MAIL, schema=schema, arguments={"to": "three"})
    # When they are moved
    await on_postgres.queue.sweep()
    found = await on_postgres.arrived()
    # Then all others are there, and the large one says why it is not
    assert sorted(item["payload"] for item in found) == [b'{"to":"one"}', b'{"to":"three"}', b'{"to":"two"}']
    with psycopg.connect(on_postgres.address) as connection:
        set_aside = connection.execute(f"SELECT reason FROM {schema}.outbox ORDER BY place".encode()).fetchall()
    assert set_aside == [
        ("its payload has 100009 bytes, at most 65536 are taken",),
        ("function 'tailrace.callback' begins with 'tailrace.', as only the platform's own do: choose another name",),
    ]


async def test_a_row_in_the_queue_s_own_file_that_is_no_workload_is_set_aside(on_sqlite: Place) -> None:
    # Given rows that somebody wrote by hand, wrongly, and one larger than this queue takes, among others
    connection = sqlite3.connect(on_sqlite.address)
    for to in ("one", "wrong", "large" * 20_000, "two"):
        tailrace.enqueue(connection, MAIL, arguments={"to": to})
    connection.execute("UPDATE tailrace_outbox SET headers = '{}' WHERE place = 2")
    connection.commit()
    # When they are moved
    found = await on_sqlite.arrived()
    # Then the others are there, and these say why they are not
    assert [item["payload"] for item in found] == [b'{"to":"one"}', b'{"to":"two"}']
    reasons = [reason for (reason,) in connection.execute("SELECT reason FROM tailrace_outbox ORDER BY place")]
    assert reasons[0].startswith("headers: ") and "100009 bytes, at most 65536" in reasons[1]
    connection.close()


async def test_a_plain_role_may_enqueue_and_nothing_else(on_postgres: Place) -> None:
    # Given a role that may use the schema
    schema = on_postgres.schema
    with psycopg.connect(on_postgres.address, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE plain_{schema}".encode())
        try:
            with psycopg.connect(on_postgres.address) as connection:
                connection.execute(f"SET ROLE plain_{schema}".encode())
                with pytest.raises(ConfigError, match="GRANT USAGE ON SCHEMA"):
                    tailrace.enqueue(connection, MAIL, schema=schema)
                connection.rollback()
                owner.execute(f"GRANT USAGE ON SCHEMA {schema} TO plain_{schema}".encode())
                connection.execute(f"SET ROLE plain_{schema}".encode())
                # When it enqueues, though it has a table of the same name in its own temporary schema
                connection.execute("CREATE TEMPORARY TABLE outbox (x int)")
                tailrace.enqueue(connection, MAIL, schema=schema, arguments={"to": "ann"})
                connection.commit()
                # Then that is all it may do
                connection.execute(f"SET ROLE plain_{schema}".encode())
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"SELECT * FROM {schema}.outbox".encode())
                connection.rollback()
        finally:
            owner.execute(f"DROP OWNED BY plain_{schema}".encode())
            owner.execute(f"DROP ROLE plain_{schema}".encode())
    assert len(await on_postgres.arrived()) == 1


async def test_refusals_come_before_anything_is_written_and_say_what_to_do(on_postgres: Place, tmp_path: Path) -> None:
    schema = on_postgres.schema
    with psycopg.connect(on_postgres.address) as connection:
        for error, words, options in (
            (InvalidPayload, "to", {"arguments": {}}),
            (InvalidRequest, "30d", {"arguments": {"to": "ann"}, "delay": "31d"}),
            (InvalidRequest, "delay", {"arguments": {"to": "ann"}, "delay": -1}),
            (InvalidRequest, "tenant", {"arguments": {"to": "ann"}, "tenant": "a b"}),
            (InvalidRequest, "submission:", {"arguments": {"to": "ann"}, "dedupe_key": "submission:1"}),
            (InvalidPayload, "Reference", {"arguments": {"to": "a" * (1 << 20)}}),
        ):
            with pytest.raises(error, match=words):
                tailrace.enqueue(connection, send_confirmation, schema=schema, **options)
        # and the transaction is as good as before
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(ConfigError, match=r"no queue in a schema 'nowhere'.*outbox=True"):
            tailrace.enqueue(connection, MAIL, schema="nowhere")
        connection.rollback()
        with pytest.raises(ConfigError, match="tailrace outbox create"):
            tailrace.enqueue(connection, MAIL, outbox="nothing.here")
        connection.rollback()
    with (
        psycopg.connect(on_postgres.address, autocommit=True) as connection,
        pytest.raises(InvalidRequest, match=r"with connection\.transaction"),
    ):
        tailrace.enqueue(connection, MAIL, schema=schema)
    lone = sqlite3.connect(tmp_path / "app.db", isolation_level=None)
    with pytest.raises(InvalidRequest, match="BEGIN"):
        tailrace.enqueue(lone, MAIL)
    lone.execute("BEGIN")
    with pytest.raises(ConfigError, match="tailrace outbox create"):
        tailrace.enqueue(lone, MAIL)
    lone.close()
    with pytest.raises(InvalidRequest, match="cannot enqueue with 'object' objects"):
        tailrace.enqueue(object(), MAIL)
