"""The queue on Redis obeys the laws of queues, and agrees with their model."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.redis import RedisQueue, RedisQueueOptions
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.queue import MAX_PAYLOAD, QueueLaws
from tailrace.testing.conformance.queue_model import QueueModel
from tailrace.testing.conformance.queue_races import RaceLaws
from tailrace.testing.conformance.queue_search import SearchLaws


class Engine:
    """The queue under a prefix of its own and a clock of the test's own; its keys go with it."""

    def __init__(self, url: str) -> None:
        self._options = RedisQueueOptions(url=url, prefix=f"t-{uuid.uuid4()}", notify=False)
        self._clock = ManualClock()

    async def open(self) -> None:
        self.queue = RedisQueue(
            self._options,
            StoresConfig(max_payload=MAX_PAYLOAD),
            self._clock,
            store_time=lambda: int(self._clock.wall() * 1e6),
        )
        await self.queue.open()

    async def close(self) -> None:
        await self.queue.close()
        async with self._options.client() as client:
            if keys := [key async for key in client.scan_iter(f"{self.queue.base}*")]:
                await client.delete(*keys)
            await client.connection_pool.disconnect()

    def now(self) -> float:
        return self._clock.wall()

    async def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    async def reopen(self) -> None:
        await self.queue.close()
        await self.open()


class TestRedisQueue(QueueLaws, RaceLaws, SearchLaws):
    @pytest.fixture
    async def engine(self, redis_server: str) -> AsyncIterator[Engine]:
        engine = Engine(redis_server)
        await engine.open()
        yield engine
        await engine.close()


class RedisQueueModel(QueueModel):
    url = ""

    async def make_engine(self) -> Engine:
        engine = Engine(self.url)
        await engine.open()
        return engine

    async def dispose(self, engine: Engine) -> None:  # type: ignore[override]
        await engine.close()


class TestRedisQueueModel(RedisQueueModel.TestCase):
    settings = settings(
        max_examples=8,
        stateful_step_count=30,
        phases=[Phase.explicit, Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    @pytest.fixture(autouse=True)
    def server(self, redis_server: str) -> None:
        RedisQueueModel.url = redis_server
