"""The queue on PostgreSQL obeys the laws of queues, and agrees with their model."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import psycopg
import pytest
from servers.queues import MODEL_ON_A_SERVER, ServedQueue

from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.testing.conformance.queue import QueueLaws
from tailrace.testing.conformance.queue_model import QueueModel
from tailrace.testing.conformance.queue_races import RaceLaws
from tailrace.testing.conformance.queue_search import SearchLaws


class Engine(ServedQueue):
    """In a schema of its own."""

    def __init__(self, url: str, schema: str) -> None:
        options = PostgresQueueOptions(url=url, schema=schema, connections=2, notify=False)
        super().__init__(PostgresQueue, options, durability="relaxed")


class TestPostgresQueue(QueueLaws, RaceLaws, SearchLaws):
    @pytest.fixture
    async def engine(self, postgres_server: str, postgres_schema: str) -> AsyncIterator[Engine]:
        engine = Engine(postgres_server, postgres_schema)
        await engine.open()
        yield engine
        await engine.close()


class PostgresQueueModel(QueueModel):
    url = ""

    async def make_engine(self) -> Engine:
        self.schema = f"t_{uuid.uuid4().hex}"
        engine = Engine(self.url, self.schema)
        await engine.open()
        return engine

    async def dispose(self, engine: Engine) -> None:  # type: ignore[override]
        await engine.close()
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            await connection.execute(f"DROP SCHEMA {self.schema} CASCADE".encode())


class TestPostgresQueueModel(PostgresQueueModel.TestCase):
    settings = MODEL_ON_A_SERVER

    @pytest.fixture(autouse=True)
    def server(self, postgres_server: str) -> None:
        PostgresQueueModel.url = postgres_server
