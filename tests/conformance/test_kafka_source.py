"""The Kafka source obeys the laws of stream sources, on a real broker, with either client, with one partition and with
three; and it says in plain words what a broker does to it."""

from __future__ import annotations

import asyncio
import time
import uuid
from types import SimpleNamespace

import pytest

from tailrace.model.errors import NotConnected
from tailrace.stores.checkpoints.sqlite import SCHEMA, SqliteCheckpoints
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.tailers.sources.kafka import KIND, KafkaSourceOptions
from tailrace.tailers.sources.kafka_group import KafkaGroup
from tailrace.testing.conformance.source import StreamSourceLaws

CLIENTS = ("kafka-python", "confluent")


class Whole:
    """A group's only member, and all of its partitions as one source."""

    def __init__(self, options, partitions, checkpoints):
        self.group = KafkaGroup(options, "conformance", checkpoints)
        self.capabilities = self.group.capabilities
        self._count = partitions
        self._parts = {}
        self._open = False

    async def open(self, positions):
        if self._open:
            return
        await self.group.open()
        names = frozenset()
        async with asyncio.timeout(20):
            while len(names) < self._count:
                names = await self.group.changed(names)
        self._parts = {name: self.group.partition(name) for name in sorted(names)}
        for part in self._parts.values():
            await part.open(positions)
        self._open = True

    async def read(self, limit, max_bytes, timeout):
        # What is there takes a round trip or two to come: "nothing" is only said when everything was fetched.
        end = time.monotonic() + (timeout if await self._all_fetched() else 5)
        while self._open:
            for part in self._parts.values():
                if found := await part.read(limit, max_bytes, 0):
                    return found
            if time.monotonic() > end:
                return []
            await asyncio.sleep(0.01)
        return []

    async def _all_fetched(self):
        try:
            ends = await self.ends()
        except NotConnected:
            if self._open:
                raise
            return False  # closed meanwhile
        return all(part.fetched >= ends[name] for name, part in self._parts.items())

    async def reread(self, partition, positions):
        return await self._parts[partition].reread(partition, positions)

    async def ends(self):
        found = {}
        for part in self._parts.values():
            found |= await part.ends()
        return found

    async def close(self):
        self._open = False
        for part in self._parts.values():
            await part.close()
        await self.group.close()


class Bench:
    def __init__(self, kafka, client, partitions, checkpoints):
        self.checkpoints = checkpoints
        self.topic = f"source-{uuid.uuid4().hex[:10]}"
        self.partitions = partitions
        self.options = KafkaSourceOptions(
            bootstrap_servers=kafka, client=client, topic=self.topic, group=self.topic, session_timeout=6
        )
        self.log = KafkaLog(KafkaOptions(bootstrap_servers=kafka), prefix="")
        self.sources = []
        self.turn = 0

    def source(self):
        self.sources.append(Whole(self.options, self.partitions, self.checkpoints))
        return self.sources[-1]

    def reader(self):
        environment = SimpleNamespace(tailer="conformance", checkpoints=self.checkpoints)
        self.sources.append(KIND.reader(self.options, environment))
        return self.sources[-1]

    async def put(self, payloads):
        for payload in payloads:
            await self.log.append(self.topic, self.turn % self.partitions, [Record(payload)])
            self.turn += 1

    async def close(self):
        for source in self.sources:
            await source.close()
        await self.log.close()


class Laws(StreamSourceLaws):
    client = ""
    partitions = 1

    @pytest.fixture
    async def bench(self, kafka, tmp_path):
        state = SqliteFile(tmp_path / "state.db", SCHEMA, name="state")
        await state.open()
        bench = Bench(kafka, self.client, self.partitions, SqliteCheckpoints(state))
        await bench.log.create(bench.topic, self.partitions)
        yield bench
        await bench.close()
        await state.close()


class TestKafkaSource(Laws):
    client = "kafka-python"


class TestKafkaSourceOfThreePartitions(Laws):
    client = "kafka-python"
    partitions = 3


class TestKafkaSourceOnConfluent(Laws):
    client = "confluent"


class TestKafkaSourceOfThreePartitionsOnConfluent(Laws):
    client = "confluent"
    partitions = 3
