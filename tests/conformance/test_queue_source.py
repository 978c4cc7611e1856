"""The queue source obeys the laws of queue sources."""

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.tailers.sources.queue import QueueStoreSource
from tailrace.testing.conformance.source import QueueSourceLaws


class Bench:
    def __init__(self, queue):
        self.queue = queue

    def source(self):
        return QueueStoreSource(self.queue)

    async def put(self, payloads):
        await self.queue.submit([NewItem(Kind("f", 2), payload) for payload in payloads])


class TestQueueSource(QueueSourceLaws):
    @pytest.fixture
    async def bench(self, tmp_path):
        async with EmbeddedStores(tmp_path / "data") as stores:
            yield Bench(stores.queue)
