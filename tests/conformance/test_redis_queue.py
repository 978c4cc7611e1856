"""The queue on Redis obeys the laws of queues, and agrees with their model."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from servers.queues import AT_LENGTH, MODEL_ON_A_SERVER, ServedQueue

from tailrace.stores.queue.redis.queue import RedisQueue, RedisQueueOptions
from tailrace.testing.conformance.queue import QueueLaws
from tailrace.testing.conformance.queue_callbacks import NoCallbackLaws
from tailrace.testing.conformance.queue_model import QueueModel
from tailrace.testing.conformance.queue_races import RaceLaws
from tailrace.testing.conformance.queue_search import SearchLaws
from tailrace.testing.conformance.queue_sweeps import SweepLaws


class Engine(ServedQueue):
    """A queue under a prefix of its own; its keys go with it."""

    def __init__(self, url: str) -> None:
        super().__init__(RedisQueue, RedisQueueOptions(url=url, prefix=f"t-{uuid.uuid4()}", notify=False))

    async def close(self) -> None:
        await super().close()
        async with self.options.client() as client:
            if keys := [key async for key in client.scan_iter(f"{self.queue.base}*")]:
                await client.delete(*keys)
            await client.connection_pool.disconnect()


class TestRedisQueue(QueueLaws, NoCallbackLaws, RaceLaws, SearchLaws, SweepLaws):
    @pytest.fixture
    async def engine(self, redis_server: str) -> AsyncIterator[Engine]:
        engine = Engine(redis_server)
        await engine.open()
        yield engine
        await engine.close()


class RedisQueueModel(QueueModel):
    tells = False

    url = ""

    async def make_engine(self) -> Engine:
        engine = Engine(self.url)
        await engine.open()
        return engine

    async def dispose(self, engine: Engine) -> None:  # type: ignore[override]
        await engine.close()


class TestRedisQueueModel(RedisQueueModel.TestCase):
    settings = MODEL_ON_A_SERVER

    @pytest.fixture(autouse=True)
    def server(self, redis_server: str) -> None:
        RedisQueueModel.url = redis_server


@pytest.mark.long(minutes=0.5)
class TestRedisQueueModelAtLength(TestRedisQueueModel):
    settings = AT_LENGTH
