"""A tailer on the newest broker, which is as Kafka is by default: what differs there is where faults were."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from kafka.admin import KafkaAdminClient

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record

sys.path.insert(0, str(Path(__file__).parent))
from kafka_topic import Topic, numbered, ran

pytestmark = pytest.mark.long(minutes=0.05)
CLIENTS = pytest.mark.parametrize("client", ["kafka-python", "confluent"])


@pytest.fixture
async def topic(newest_kafka):
    topic = Topic(newest_kafka.bootstrap)
    yield topic
    await topic.log.close()


def asked(topic, method):
    admin = KafkaAdminClient(bootstrap_servers=topic.bootstrap)
    try:
        return method(admin)
    finally:
        admin.close()


@CLIENTS
async def test_a_topic_is_read_deleted_and_made_again(topic, start, scheduler, eventually, client):
    # Given a tailer that reads a topic
    await topic.log.create(topic.name, 2)
    await topic.put(0, numbered(20))
    scheduler.allow("f")
    source = topic.source(client=client, on_recreated="from_start")
    tailer = await start(0.5, source=source, function="f")
    await eventually(lambda: tailer.overview().settled == 20, 60)
    await topic.log.close()
    # When the topic is deleted, then nobody makes it again
    await asyncio.to_thread(asked, topic, lambda admin: admin.delete_topics([topic.name]))
    await eventually(lambda: "does not exist" in tailer.overview().detail, 60)
    await asyncio.sleep(1)
    assert topic.name not in await asyncio.to_thread(asked, topic, lambda admin: admin.list_topics())
    # And when somebody does, it is read whole
    topic.log._counts.clear()
    await topic.log.create(topic.name, 1)
    await topic.put(0, numbered(30, 100))
    await eventually(lambda: set(ran(scheduler)) == {*range(20), *range(100, 130)}, 60)


@CLIENTS
async def test_a_group_of_the_new_protocol_is_not_joined(topic, start, scheduler, eventually, client):
    # Given another application in the group
    await topic.log.create(topic.name, 2)
    settings = {"bootstrap.servers": topic.bootstrap, "group.id": topic.name, "client.id": "theirs"}
    theirs = Consumer(settings | {"group.protocol": "consumer"})
    theirs.subscribe([topic.name])

    async def polls(until):
        async with asyncio.timeout(60):
            while not until():
                await asyncio.to_thread(theirs.poll, 0.1)

    await polls(lambda: len(theirs.assignment()) == 2)
    # When a tailer is to read in its name, then it stays out
    scheduler.allow("f")
    tailer = await start(0.5, source=topic.source(client=client), function="f")
    await polls(lambda: "another application" in tailer.overview().detail)
    assert len(theirs.assignment()) == 2
    # And reads when they have left
    await asyncio.to_thread(theirs.close)
    await topic.put(1, numbered(5))
    await eventually(lambda: tailer.overview().settled == 5, 60)


@CLIENTS
async def test_a_log_takes_records_of_a_clock_that_is_hours_ahead(newest_kafka, client):
    class Ahead:
        monotonic = staticmethod(SYSTEM_CLOCK.monotonic)

        def wall(self):
            return SYSTEM_CLOCK.wall() + 7200

    log = KafkaLog(
        KafkaOptions(bootstrap_servers=newest_kafka.bootstrap, client=client), Ahead(), prefix=f"{client}.ahead."
    )
    try:
        assert await log.append("due.send", 0, [Record(b"x")]) == 0
    finally:
        await log.close()
