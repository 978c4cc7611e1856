"""`tailrace.enqueue` in Django's transactions, on real PostgreSQL and SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
import psycopg
import pytest
from django.conf import settings
from django.db import connections, transaction

import tailrace
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import ConfigError, InvalidRequest
from tailrace.stores.config import StoresConfig
from tailrace.stores.outbox import sqlite_table
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions

MAIL = Demand({Cell("mail", 2): 10}, frozenset(), 10)

if not settings.configured:
    settings.configure(DATABASES={}, USE_TZ=True, LOGGING_CONFIG=None)
    django.setup()


@contextmanager
def database(**keys: Any) -> Iterator[Any]:
    """Django's connection to a database, in this thread."""
    alias = f"db_{uuid.uuid4().hex}"
    dummy = {"ENGINE": "django.db.backends.dummy"}
    connections.settings[alias] = connections.configure_settings({"default": dummy, alias: keys})[alias]
    try:
        yield connections[alias]
    finally:
        connections[alias].close()
        del connections[alias]
        del connections.settings[alias]


def sign_up(connection: Any, email: str, **options: Any) -> None:
    with transaction.atomic(using=connection.alias):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO users (email) VALUES (%s)", [email])
        tailrace.enqueue(connection, "mail", to=email, **options)
        if email == "nobody":
            raise ValueError(email)


def sign_two_up(connection: Any, **options: Any) -> list[str]:
    """Signs two people up, of whom one is rolled back and one is committed. Returns who is a user then."""
    with pytest.raises(ValueError, match="nobody"):
        sign_up(connection, "nobody", **options)
    sign_up(connection, "ann", **options)
    with pytest.raises(InvalidRequest, match=r"transaction\.atomic"):
        tailrace.enqueue(connection, "mail", **options)
    with connection.cursor() as cursor:
        cursor.execute("SELECT email FROM users")
        return [email for (email,) in cursor.fetchall()]


async def test_on_postgres_it_is_there_with_the_commit_and_not_without(
    postgres_server: str, postgres_schema: str
) -> None:
    queue = PostgresQueue(
        PostgresQueueOptions(url=postgres_server, schema=postgres_schema, connections=1, notify=False),
        StoresConfig(durability="relaxed"),
    )
    await queue.open()
    parts = psycopg.conninfo.conninfo_to_dict(postgres_server)

    def in_django() -> list[str]:
        with database(
            ENGINE="django.db.backends.postgresql",
            NAME=parts["dbname"],
            USER=parts["user"],
            PASSWORD=parts["password"],
            HOST=parts["host"],
            PORT=parts["port"],
            OPTIONS={"options": f"-c search_path={postgres_schema}"},
        ) as connection:
            with connection.cursor() as cursor:
                cursor.execute("CREATE TABLE users (email text)")
            users = sign_two_up(connection, schema=postgres_schema)
            with pytest.raises(ConfigError, match="no queue in a schema 'nowhere'"):
                sign_up(connection, "bob", schema="nowhere")
            return users

    # When one is rolled back and one committed
    assert await asyncio.to_thread(in_django) == ["ann"]
    # Then there is one mail
    await queue.sweep()
    leased = await queue.lease(MAIL, 30, 0)
    assert leased is not None and leased.payloads == [b'{"to":"ann"}']
    await queue.close()


def test_on_sqlite_it_is_in_the_outbox_with_the_commit_and_not_without(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (email TEXT)")
        for statement in sqlite_table.create():
            connection.execute(statement)
    connection.close()
    with database(ENGINE="django.db.backends.sqlite3", NAME=str(path)) as connection:
        assert sign_two_up(connection) == ["ann"]
    left = sqlite3.connect(path)
    assert left.execute("SELECT function, payload FROM tailrace_outbox").fetchall() == [("mail", b'{"to":"ann"}')]
    left.close()
