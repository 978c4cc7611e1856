"""Refusals of a broker are a state of the tailer, in words that say what to do; the tailer goes on by itself when they
are mended."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

from tailrace.stores.kafka.clients import client_of
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record

CLIENTS = pytest.mark.parametrize("client", ["kafka-python", "confluent"])


@pytest.fixture
def name():
    return f"orders-{uuid.uuid4().hex[:8]}"


def source(bootstrap, name, **more):
    keys = {"kind": "kafka", "bootstrap_servers": bootstrap, "topic": name, "group": name}
    return keys | {"session_timeout": "6s", "request_timeout": "2s"} | more


async def fill(bootstrap, name, count=3):
    log = KafkaLog(KafkaOptions(bootstrap_servers=bootstrap), prefix="")
    await log.append(name, 0, [Record(b"%d" % n) for n in range(count)])
    await log.close()


@CLIENTS
async def test_a_broker_that_does_not_answer(start, scheduler, eventually, name, client):
    scheduler.allow("f")
    tailer = await start(0.5, source=source("127.0.0.1:1", name, client=client), function="f")
    await eventually(lambda: "bootstrap_servers" in tailer.overview().detail, 20)
    assert tailer.overview().state == "disconnected" and "127.0.0.1:1" in tailer.overview().detail


@pytest.mark.parametrize(
    ("client", "way"), [("kafka-python", CooperativeStickyAssignor), ("confluent", RangePartitionAssignor)]
)
async def test_a_group_of_another_application(kafka, start, scheduler, eventually, name, client, way):
    # Given a group whose member hands out partitions in the same way, which no broker refuses, or in another one
    await fill(kafka, name)
    other = KafkaConsumer(
        bootstrap_servers=kafka,
        group_id=name,
        enable_auto_commit=False,
        partition_assignment_strategy=[way()],
    )
    assert other.partitions_for_topic(name) == {0}
    other.subscribe([name])
    polling = True

    def poll():
        while polling:
            other.poll(100)
        other.close()

    thread = asyncio.create_task(asyncio.to_thread(poll))
    try:
        while not other.assignment():
            await asyncio.sleep(0.05)
        # When a tailer wants to join it
        scheduler.allow("f")
        tailer = await start(0.5, source=source(kafka, name, client=client), function="f")
        # Then it says so
        await eventually(lambda: "take another group" in tailer.overview().detail, 60)
    finally:
        polling = False
        await thread
    # And when the other one has left, it reads
    await eventually(lambda: tailer.overview().settled == 3, 60)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_what_is_compressed_is_read(kafka, start, scheduler, eventually, name, codec):
    # Given records as another client compresses them
    await fill(kafka, name, 1)
    producer = Producer({"bootstrap.servers": kafka, "compression.type": codec, "linger.ms": 50})
    for n in range(20):
        producer.produce(name, b"%d" % n * 200, partition=0)
    assert producer.flush(10) == 0
    # When the client of the extra `kafka` reads them, then all are run as they were
    scheduler.allow("f")
    tailer = await start(0.5, source=source(kafka, name), function="f")
    await eventually(lambda: tailer.overview().settled == 21, 60)


async def test_a_codec_that_is_not_installed(kafka, start, scheduler, eventually, name, monkeypatch):
    # Given records compressed as this client cannot read them (librdkafka can), and a partition without any
    monkeypatch.setattr("kafka.codec.zstd", None)
    log = KafkaLog(KafkaOptions(bootstrap_servers=kafka), prefix="")
    await log.append(name, 1, [Record(b"before")])
    producer = Producer({"bootstrap.servers": kafka, "compression.type": "zstd"})
    for n in range(20):
        producer.produce(name, b"%d" % n * 200, partition=0)
    assert producer.flush(10) == 0
    scheduler.allow("f")
    tailer = await start(0.5, source=source(kafka, name), function="f")
    await eventually(lambda: "install its codec" in tailer.overview().detail, 60)
    assert tailer.overview().state == "disconnected"
    # Then it tries again, and what it can read meanwhile it does: it is in nobody's way in the group
    await eventually(lambda: tailer.overview().settled == 1, 60)
    await log.append(name, 1, [Record(b"after")])
    await eventually(lambda: tailer.overview().settled == 2, 60)
    await log.close()
    await tailer.stop()
    admin = client_of(KafkaOptions(bootstrap_servers=kafka)).topic_admin(KafkaOptions(bootstrap_servers=kafka))
    assert admin.members(name) == []
    admin.close()
    # And with a client that reads them nothing is missing
    again = await start(0.5, source=source(kafka, name, client="confluent"), function="f")
    await eventually(lambda: again.overview().settled >= 20, 60)
