"""Queues on PostgreSQL and SQLite with a table of users beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from scenes.enqueue_place import Place

from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.stores.queue.sqlite import queue as sqlite_queue
from tailrace.stores.sqlite.file import SqliteFile


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
