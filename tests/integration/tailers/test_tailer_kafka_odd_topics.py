"""Topics as they are out there: compacted, with records too large or with clocks far off; and static members."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tailrace.model.dead_letter import EVERY
from tailrace.tailers.sources.kafka_partition import BUFFER_ITEMS

sys.path.insert(0, str(Path(__file__).parent))
from kafka_topic import Topic, numbered, ran

YEAR = 365 * 86_400_000


@pytest.fixture
async def topic(kafka):
    topic = Topic(kafka)
    yield topic
    await topic.log.close()


def create(topic, **settings):
    admin = KafkaAdminClient(bootstrap_servers=topic.bootstrap)
    configs = {name.replace("_", "."): str(value) for name, value in settings.items()}
    admin.create_topics([NewTopic(topic.name, 1, 1, topic_configs=configs)])
    admin.close()


async def test_a_compacted_topic_is_read_over_its_gaps(topic, start, scheduler, eventually):
    # Given a topic of which the broker has compacted most away
    compacts = {"cleanup_policy": "compact", "segment_ms": 100, "min_cleanable_dirty_ratio": 0.001}

    def produce():
        create(topic, **compacts, max_compaction_lag_ms=100)
        producer = KafkaProducer(bootstrap_servers=topic.bootstrap)
        for n in range(40):
            producer.send(topic.name, b"%d" % n, b"key-%d" % (n % 4), partition=0)
            if n % 10 == 9:
                producer.flush()
                time.sleep(0.15)  # the next record begins a segment
        producer.close()

    def survivors():
        place = TopicPartition(topic.name, 0)
        reader = KafkaConsumer(bootstrap_servers=topic.bootstrap, group_id=None)
        reader.assign([place])
        reader.seek(place, 0)
        found = []
        while not found or found[-1].offset < 39:
            found += reader.poll(500).get(place, [])
        reader.close()
        return [int(record.value) for record in found]

    await asyncio.to_thread(produce)
    async with asyncio.timeout(60):
        while len(kept := await asyncio.to_thread(survivors)) > 20:
            await asyncio.sleep(0.2)
    assert 39 in kept
    scheduler.allow("f")
    # When it is read
    tailer = await start(0.5, source=topic.source(), function="f")
    # Then what is left runs, and the frontier passes the gaps
    await eventually(lambda: tailer.overview().settled > 0 and tailer.audits()[0].end == 40, 60)
    await topic.knows(0, 40)
    assert set(ran(scheduler)) <= set(kept) and 39 in ran(scheduler)


async def test_a_record_too_large_for_any_message_is_a_dead_letter(topic, start, scheduler, stores):
    # Given a topic that takes records larger than the platform hands on
    large = 20 << 20

    def produce():
        create(topic, max_message_bytes=2 * large)
        producer = KafkaProducer(bootstrap_servers=topic.bootstrap, max_request_size=2 * large)
        for payload in (b"1", bytes(large), b"2", bytes(2 << 20), b"3"):
            producer.send(topic.name, payload, partition=0).get(30)
        producer.close()

    await asyncio.to_thread(produce)
    scheduler.allow("f")
    # When it is read
    await start(0.5, source=topic.source(), function="f")
    # Then that one is a dead letter that says so, and the others run
    await topic.knows(0, 5)
    payloads = [payload for flight in scheduler.flights for payload in flight.payloads]
    assert sorted(map(len, payloads)) == [1, 1, 1, 2 << 20]
    (letter,) = await stores.dead_letters.list(EVERY, 10, 0)
    assert f"has {large} bytes" in letter.reason and letter.position == 1


async def test_clocks_far_off_change_nothing(topic, start, scheduler, eventually):
    # Given records whose producers' clocks are years behind and ahead of ours, in any order
    times = [1, 50 * YEAR, 100 * YEAR, 55 * YEAR, 0]

    def produce():
        create(topic, retention_ms=-1)
        producer = KafkaProducer(bootstrap_servers=topic.bootstrap)
        for n, at in enumerate(times):
            producer.send(topic.name, b"%d" % n, partition=0, timestamp_ms=at)
        producer.close()

    await asyncio.to_thread(produce)
    scheduler.allow("f")
    # When they are read, then all of them run, and the checkpoint passes them
    tailer = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: tailer.overview().settled == len(times), 60)
    assert ran(scheduler) == list(range(len(times)))
    await topic.knows(0, len(times))


async def test_a_static_member_that_is_back_in_time_moves_nobody(topic, start, scheduler, eventually):
    # Given two static members with two partitions each
    await topic.log.create(topic.name, 4)
    scheduler.allow("f")
    keys = {"session_timeout": "30s"}
    first = await start(0.5, source=topic.source(group_instance_id="a", **keys), function="f")
    await eventually(lambda: len(first._pump.pumps) == 4, 60)
    second = await start(0.5, source=topic.source(group_instance_id="b", **keys), function="f")
    await eventually(lambda: len(first._pump.pumps) == 2 == len(second._pump.pumps), 60)
    pumps, names = dict(first._pump.pumps), set(second._pump.pumps)
    # When one of them is restarted
    await second.stop()
    again = await start(0.5, source=topic.source(group_instance_id="b", **keys), function="f")
    for partition in range(4):
        await topic.put(partition, numbered(5, partition * 5))
    await eventually(lambda: first.overview().settled + again.overview().settled == 20, 60)
    # Then it has what it had, and the other one was not disturbed
    assert set(again._pump.pumps) == names
    assert dict(first._pump.pumps) == pumps
    assert ran(scheduler) == list(range(20))


async def test_retention_that_passes_a_running_tailer_is_counted(topic, start, scheduler, stores, eventually):
    # Given a tailer that may not run anything, and has fetched as much ahead as it does
    count = 2 * BUFFER_ITEMS
    for first in range(0, count, 1024):  # large enough that no client has all of it in a buffer of its own
        await topic.put(0, [payload.ljust(600) for payload in numbered(1024, first)])
    tailer = await start(0.5, source=topic.source(), function="f", allow_loss=["retention"])
    await eventually(lambda: f"{topic.name}-0" in tailer._pump.pumps, 60)
    (part,) = tailer._pump.source._parts.values()
    await eventually(lambda: part.full, 60)
    # When retention takes all that was there then
    await topic.log.trim(topic.name, 0, count)
    await topic.put(0, numbered(10, count))
    scheduler.allow("f")
    # Then what was fetched runs, what was not is noted as lost, and the rest goes on
    await eventually(lambda: tailer.overview().settled + tailer.overview().lost == count + 10, 90)
    (drop,) = await stores.drops.within("t", f"{topic.name}-0", 0, 10 * count)
    assert drop.last == count - 1 and drop.last + 1 - drop.first == tailer.overview().lost > 0
    assert ran(scheduler)[-10:] == list(range(count, count + 10))
    await topic.knows(0, count + 10)
