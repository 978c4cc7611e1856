"""The source of schedules obeys the laws of stream sources; each item that a law puts is one run."""

import itertools

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.schedule import Schedule, ScheduleRow
from tailrace.tailers.sources.schedule import ScheduleSource
from tailrace.testing.conformance.source import StreamSourceLaws


class Bench:
    def __init__(self, schedules):
        self.schedules = schedules
        self.names = map(str, itertools.count())

    def source(self):
        return ScheduleSource(self.schedules, SYSTEM_CLOCK)

    async def put(self, payloads):
        for payload in payloads:
            name = next(self.names)
            assert await self.schedules.put(ScheduleRow(Schedule(name, "f", payload, every=60.0)), 0)
            assert await self.schedules.run(name, 1.0, 1.0)


class TestScheduleSource(StreamSourceLaws):
    @pytest.fixture
    async def bench(self, tmp_path):
        async with EmbeddedStores(tmp_path / "data") as stores:
            yield Bench(stores.schedules)
