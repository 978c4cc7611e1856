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
from scenes.enqueue_place import Place, send_confirmation
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import tailrace
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions

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
    """Returns a value, awaited where it is to be."""
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
    """Runs the guide's example in processes that are killed. Returns the names that were answered as signed up."""
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
