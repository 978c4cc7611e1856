"""The queue on PostgreSQL obeys the laws of queues, and agrees with their model."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings

from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.postgres import PostgresQueue, PostgresQueueOptions
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.queue import MAX_PAYLOAD, QueueLaws
from tailrace.testing.conformance.queue_model import QueueModel
from tailrace.testing.conformance.queue_races import RaceLaws
from tailrace.testing.conformance.queue_search import SearchLaws


class Engine:
    """The queue in a schema of its own, under a clock of the test's own."""

    def __init__(self, url: str, schema: str) -> None:
        self._options = PostgresQueueOptions(url=url, schema=schema, connections=2, notify=False)
        self._clock = ManualClock()

    async def open(self) -> None:
        self.queue = PostgresQueue(
            self._options,
            StoresConfig(max_payload=MAX_PAYLOAD, durability="relaxed"),
            self._clock,
            store_time=lambda: int(self._clock.wall() * 1e6),
        )
        await self.queue.open()

    async def close(self) -> None:
        await self.queue.close()

    def now(self) -> float:
        return self._clock.wall()

    async def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    async def reopen(self) -> None:
        await self.close()
        await self.open()


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
    settings = settings(
        max_examples=8,
        stateful_step_count=30,
        phases=[Phase.explicit, Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    @pytest.fixture(autouse=True)
    def server(self, postgres_server: str) -> None:
        PostgresQueueModel.url = postgres_server
