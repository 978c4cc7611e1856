"""The log on Kafka obeys the laws of logs, on a real broker and with either client."""

from __future__ import annotations

import contextlib
import uuid

import pytest

from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.kafka_options import KafkaOptions
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


class TestKafkaLog(Laws):
    client = "kafka-python"


class TestKafkaLogOnConfluent(Laws):
    client = "confluent"
