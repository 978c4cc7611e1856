"""The log on Kafka obeys the laws of logs, on a real broker and with either client."""

from __future__ import annotations

import contextlib
import uuid

import pytest

from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.log import LogLaws


class Bench:
    """A log whose topics bear a prefix that nobody else has."""

    def __init__(self, options):
        self.clock = ManualClock()
        self._options = options
        self._prefix = f"laws-{uuid.uuid4().hex[:12]}."
        self.engine = self._made()

    def _made(self):
        return KafkaLog(self._options, self.clock, prefix=self._prefix)

    async def reopen(self):
        await self.engine.close()
        self.engine = self._made()


class Laws(LogLaws):
    client = ""

    @pytest.fixture(autouse=True)
    def broker(self, kafka):
        self.options = KafkaOptions(bootstrap_servers=kafka, client=self.client)

    @contextlib.asynccontextmanager
    async def bench(self, folder):
        bench = Bench(self.options)
        yield bench
        await bench.engine.close()

    async def test_a_header_name_with_a_zero_byte_comes_back_whole(self, store):
        headers = (("a\0b", "1"), ("tailrace.hex:00", "2"))
        await store.engine.append("s", 0, [Record(b"x", "", headers)])
        assert (await store.engine.read("s", 0, 0, 10, 1 << 20)).headers == [headers]


class TestKafkaLog(Laws):
    client = "kafka-python"


class TestKafkaLogOnConfluent(Laws):
    client = "confluent"
