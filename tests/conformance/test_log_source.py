"""The log source obeys the laws of stream sources, with one partition and with three."""

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.stores.log.log import Record
from tailrace.tailers.sources.log import LogSource
from tailrace.testing.conformance.source import StreamSourceLaws


class Bench:
    def __init__(self, log, partitions):
        self.log = log
        self.partitions = partitions
        self.turn = 0

    def source(self):
        return LogSource(self.log, "s")

    async def put(self, payloads):
        for payload in payloads:
            await self.log.append("s", self.turn % self.partitions, [Record(payload)])
            self.turn += 1


class TestLogSource(StreamSourceLaws):
    @pytest.fixture
    async def bench(self, tmp_path):
        async with EmbeddedStores(tmp_path / "data") as stores:
            yield Bench(stores.log, 1)


class TestLogSourceOfThreePartitions(StreamSourceLaws):
    @pytest.fixture
    async def bench(self, tmp_path):
        async with EmbeddedStores(tmp_path / "data") as stores:
            await stores.log.create("s", 3)
            yield Bench(stores.log, 3)
