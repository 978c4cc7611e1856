"""A topic for one test: its records, and what its group knows."""

from __future__ import annotations

import asyncio
import uuid

from kafka import KafkaConsumer, TopicPartition

from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record


class Topic:
    """A topic with a name that nobody else has, its records, and its group."""

    def __init__(self, kafka):
        self.bootstrap = kafka
        self.name = f"orders-{uuid.uuid4().hex[:8]}"
        self.log = KafkaLog(KafkaOptions(bootstrap_servers=kafka), prefix="")

    def source(self, **more):
        keys = {"kind": "kafka", "bootstrap_servers": self.bootstrap, "topic": self.name, "group": self.name}
        return keys | {"session_timeout": "6s", "release_within": "2s"} | more

    async def put(self, partition, payloads, headers=()):
        await self.log.append(self.name, partition, [Record(payload, "", headers) for payload in payloads])

    async def committed(self, partition):
        """The offset that the group has committed, as any lag tool would see it."""

        def look():
            consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=self.name)
            try:
                return consumer.committed(TopicPartition(self.name, partition))
            finally:
                consumer.close()

        return await asyncio.to_thread(look)

    async def knows(self, partition, position):
        """Waits until the group knows this offset."""
        async with asyncio.timeout(30):
            while await self.committed(partition) != position:
                await asyncio.sleep(0.2)


def numbered(count, first=0):
    return [b"%d" % n for n in range(first, first + count)]


def ran(scheduler):
    return sorted(int(payload) for flight in scheduler.flights for payload in flight.payloads)
