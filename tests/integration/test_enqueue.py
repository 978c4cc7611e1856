"""`tailrace.enqueue` in transactions of every library, on real PostgreSQL and SQLite: all or nothing, never early."""

from __future__ import annotations

import asyncio
import inspect
import re
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import tailrace
from tailrace.sdk.model.demand import Cell, Demand
from tailrace.sdk.model.errors import ConfigError, InvalidPayload, InvalidRequest
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.stores.queue.sqlite import queue as sqlite_queue
from tailrace.stores.sqlite import SqliteFile

MAIL = "send_confirmation"
ANY = Demand({Cell(MAIL, priority): 1000 for priority in range(4)}, frozenset(), 1000)


@tailrace.function(name=MAIL, priority="interactive")
async def send_confirmation(to: str) -> None: ...


class Place:
    """Where a queue rests, with what tests do beside it."""

    def __init__(self, queue: Any, address: str, schema: str = "") -> None:
        self.queue, self.address, self.schema = queue, address, schema
        self.options = {"schema": schema} if schema else {}

    async def arrived(self) -> list[dict[str, Any]]:
        """What is in the queue now, once it has looked."""
        await self.queue.sweep()
        leased = await self.queue.lease(ANY, 30, 0)
        if leased is None:
            return []
        return [
            {
                "payload": payload,
                "kind": kind,
                "id": id,
                "extra": leased.extras.get(index),
                "fence": leased.fence,
            }
            for index, (payload, kind, id) in enumerate(zip(leased.payloads, leased.kinds, leased.ids, strict=True))
        ]

    async def done(self, items: list[dict[str, Any]]) -> None:
        await self.queue.settle(items[0]["fence"], [item["id"] for item in items], [])


@pytest.fixture
async def on_postgres(postgres_server: str, postgres_schema: str) -> AsyncIterator[Place]:
    options = PostgresQueueOptions(url=postgres_server, schema=postgres_schema, connections=2, notify=False)
    queue = PostgresQueue(options, StoresConfig(durability="relaxed", max_payload="64KiB"))
    await queue.open()
    place = Place(queue, postgres_server, postgres_schema)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {postgres_schema}.users (email text, asked int)")
    yield place
    await queue.close()


@pytest.fixture
async def on_sqlite(tmp_path: Path) -> AsyncIterator[Place]:
    file = SqliteFile(tmp_path / "queue.db", sqlite_queue.SCHEMA, name="queue", synchronous="OFF")
    await file.open()
    queue = sqlite_queue.SqliteQueue(file, StoresConfig(max_payload="64KiB"))
    await queue.open()
    with sqlite3.connect(file.path) as connection:
        connection.execute("CREATE TABLE users (email TEXT, asked INTEGER)")
    connection.close()
    yield Place(queue, str(file.path))
    await queue.close()
    await file.close()


# Each library's way: what it gives a test is (run a statement, the connection to enqueue with, commit, roll back).

Way = tuple[Callable[[str], Any], Any, Callable[[], Any], Callable[[], Any]]


@asynccontextmanager
async def psycopg_connection(place: Place) -> AsyncIterator[Way]:
    with psycopg.connect(place.address, row_factory=dict_row) as connection:
        yield connection.execute, connection, connection.commit, connection.rollback


@asynccontextmanager
async def psycopg_async_connection(place: Place) -> AsyncIterator[Way]:
    async with await psycopg.AsyncConnection.connect(place.address) as connection:
        yield connection.execute, connection, connection.commit, connection.rollback


@asynccontextmanager
async def sqlite3_connection(place: Place) -> AsyncIterator[Way]:
    connection = sqlite3.connect(place.address)
    yield connection.execute, connection, connection.commit, connection.rollback
    connection.close()


@asynccontextmanager
async def aiosqlite_connection(place: Place) -> AsyncIterator[Way]:
    async with aiosqlite.connect(place.address) as connection:
        yield connection.execute, connection, connection.commit, connection.rollback


def _url(place: Place, asynchronous: bool) -> sa.URL:
    if not place.schema:
        return sa.make_url(f"sqlite{'+aiosqlite' if asynchronous else ''}:///{place.address}")
    return sa.make_url(place.address).set(drivername="postgresql+psycopg")


@asynccontextmanager
async def sqlalchemy_session(place: Place) -> AsyncIterator[Way]:
    engine = sa.create_engine(_url(place, False))
    with Session(engine) as session:
        yield (lambda statement: session.execute(sa.text(statement))), session, session.commit, session.rollback
    engine.dispose()


@asynccontextmanager
async def sqlalchemy_connection(place: Place) -> AsyncIterator[Way]:
    engine = sa.create_engine(_url(place, False))
    with engine.connect() as connection:
        yield connection.exec_driver_sql, connection, connection.commit, connection.rollback
    engine.dispose()


@asynccontextmanager
async def sqlalchemy_async_session(place: Place) -> AsyncIterator[Way]:
    engine = create_async_engine(_url(place, True))
    async with AsyncSession(engine) as session:
        yield (lambda statement: session.execute(sa.text(statement))), session, session.commit, session.rollback
    await engine.dispose()


@asynccontextmanager
async def sqlalchemy_async_connection(place: Place) -> AsyncIterator[Way]:
    engine = create_async_engine(_url(place, True))
    async with engine.connect() as connection:
        yield connection.exec_driver_sql, connection, connection.commit, connection.rollback
    await engine.dispose()


ON_POSTGRES = (
    psycopg_connection,
    psycopg_async_connection,
    sqlalchemy_session,
    sqlalchemy_connection,
    sqlalchemy_async_session,
    sqlalchemy_async_connection,
)
ON_SQLITE = (
    sqlite3_connection,
    aiosqlite_connection,
    sqlalchemy_session,
    sqlalchemy_connection,
    sqlalchemy_async_session,
    sqlalchemy_async_connection,
)


async def now(value: Any) -> Any:
    """A value, awaited where it is to be."""
    return await value if inspect.isawaitable(value) else value


async def all_or_nothing(place: Place, way: Callable[[Place], Any]) -> None:
    users = f"{place.schema}.users" if place.schema else "users"
    async with way(place) as (run, connection, commit, rollback):
        # When a user and a mail are rolled back
        await now(run(f"INSERT INTO {users} (email) VALUES ('no@example.org')"))
        await now(tailrace.enqueue(connection, send_confirmation, "no@example.org", **place.options))
        await now(rollback())
        # Then neither is there
        assert await place.arrived() == []
        # When they wait for their commit
        await now(run(f"INSERT INTO {users} (email) VALUES ('ann@example.org')"))
        told = await now(tailrace.enqueue(connection, send_confirmation, to="ann@example.org", **place.options))
        if place.schema:  # (an open transaction keeps other writers of an SQLite file waiting)
            assert await place.arrived() == []
        await now(commit())
        # Then both are there, the mail once
        [mail] = await place.arrived()
        assert mail["payload"] == b'{"to":"ann@example.org"}'
        assert mail["kind"].priority == 0
        assert told.id in ("", mail["id"]) and bool(told.id) == bool(place.schema)
        await place.done([mail])
        assert await place.arrived() == []


@pytest.mark.parametrize("way", ON_POSTGRES, ids=lambda way: way.__name__)
async def test_on_postgres_it_is_there_with_the_commit_and_not_without(on_postgres: Place, way: Any) -> None:
    await all_or_nothing(on_postgres, way)


@pytest.mark.parametrize("way", ON_SQLITE, ids=lambda way: way.__name__)
async def test_in_the_queue_s_own_file_it_is_there_with_the_commit_and_not_without(on_sqlite: Place, way: Any) -> None:
    await all_or_nothing(on_sqlite, way)


def example(library: str) -> str:
    """The sign-up of the guide, by the library that it imports."""
    guide = Path(tailrace.__file__).parent / "docs" / "guides" / "transactional-enqueue.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", guide.read_text(), re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if f"import {library}\n" in block and "def sign_up(" in block]
    return block


async def sign_people_up(program: Path, library: str, database: str) -> list[str]:
    """Runs the guide's example in processes that are killed; those who are known to be signed up then are answered."""
    program.write_text(example(library))
    command = [sys.executable, str(Path(__file__).with_name("signing_up.py")), str(program), database]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    # before connecting, the user, the mail, the commit, the end, and behind it; the seventh is not killed
    assert said.decode().splitlines()[-1:] == ["killed 6 times"], said.decode()
    return [f"{step}@example.org" for step in (4, 5, 6)]


async def test_killed_anywhere_in_a_sign_up_there_is_a_mail_for_each_user_and_no_other_on_postgres(
    postgres_server: str, postgres_schema: str, tmp_path: Path
) -> None:
    # Given a database with users and a queue
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {postgres_schema}".encode())
    database = psycopg.conninfo.make_conninfo(postgres_server, dbname=postgres_schema)
    url = f"{postgres_server.rpartition('/')[0]}/{postgres_schema}"
    options = PostgresQueueOptions(url=url, connections=1, notify=False)
    queue = PostgresQueue(options, StoresConfig(durability="relaxed"))
    try:
        await queue.open()
        with psycopg.connect(database) as connection:
            connection.execute("CREATE TABLE users (email text)")
        # When the program is killed between any two statements of a sign-up
        signed_up = await sign_people_up(tmp_path / "sign_up.py", "psycopg", database)
        # Then those whose transaction was committed are users, with one mail each
        with psycopg.connect(database) as connection:
            users = connection.execute("SELECT email FROM users ORDER BY email").fetchall()
        assert users == [(email,) for email in signed_up]
        mails = await Place(queue, database).arrived()
        assert [mail["payload"] for mail in mails] == [b'{"to":"%s"}' % email.encode() for email in signed_up]
    finally:
        await queue.close()
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {postgres_schema} WITH (FORCE)".encode())


async def test_killed_anywhere_in_a_sign_up_there_is_a_mail_for_each_user_and_no_other_on_sqlite(
    on_sqlite: Place, tmp_path: Path
) -> None:
    signed_up = await sign_people_up(tmp_path / "sign_up.py", "sqlite3", on_sqlite.address)
    connection = sqlite3.connect(on_sqlite.address)
    assert connection.execute("SELECT email FROM users ORDER BY email").fetchall() == [(each,) for each in signed_up]
    connection.close()
    mails = await on_sqlite.arrived()
    assert [mail["payload"] for mail in mails] == [b'{"to":"%s"}' % email.encode() for email in signed_up]


async def test_options_come_through(on_postgres: Place) -> None:
    # Given rows with everything that can be said of them
    schema = on_postgres.schema
    with psycopg.connect(on_postgres.address) as connection:

        def leave(to: str, **options: Any) -> None:
            tailrace.enqueue(connection, MAIL, arguments={"to": to}, schema=schema, **options)

        leave("first", key="ann", headers={"trace": "é"}, priority="reporting", expires_after="1h", tenant="acme")
        leave("second", key="ann", priority="reporting")
        leave("later", delay="1h")
        leave("over", expires_after=0)
        leave("once", dedupe_key="welcome-ann", collection="welcome")
        leave("twice", dedupe_key="welcome-ann")
    # When they have arrived
    found = {item["payload"]: item for item in await on_postgres.arrived()}
    # Then one of a key, none too early or too late, none twice
    assert sorted(found) == [b'{"to":"first"}', b'{"to":"once"}']
    first, once = found[b'{"to":"first"}'], found[b'{"to":"once"}']
    assert (first["kind"].priority, first["kind"].tenant, first["extra"].key) == (3, "acme", "ann")
    assert first["extra"].headers == (("trace", "é"),)
    assert once["kind"].collection == "welcome"
    counts = await on_postgres.queue.counts()
    assert (counts["new"], counts["expired"]) == (2, 1)
    # And the second of the key comes when the first is done
    await on_postgres.done([first])
    assert [item["payload"] for item in await on_postgres.arrived()] == [b'{"to":"second"}']


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
    # Given a row larger than this queue takes, and one whose id is taken, among others
    schema = on_postgres.schema
    with psycopg.connect(on_postgres.address) as connection:
        first = tailrace.enqueue(connection, MAIL, schema=schema, arguments={"to": "one"})
        connection.commit()
        await on_postgres.queue.sweep()
        tailrace.enqueue(connection, MAIL, schema=schema, arguments={"to": "large" * 20_000})
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
        [(reason,)] = connection.execute(f"SELECT reason FROM {schema}.outbox".encode()).fetchall()
    assert reason == "its payload has 100009 bytes, at most 65536 are taken"


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
