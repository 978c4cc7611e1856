"""Topics that are made again under a tailer, with either client; and the questions that find it out."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient

from tailrace.model.errors import PositionsGone
from tailrace.stores.kafka.client import ReadUpTo
from tailrace.stores.kafka.client import Topic as Known
from tailrace.stores.kafka.clients import client_of
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.tailers.rules.topic_lives import committed_by
from tailrace.tailers.sources.kafka import KafkaSourceOptions
from tailrace.tailers.sources.kafka_partition import CAPABILITIES
from tailrace.tailers.sources.kafka_reread import KafkaReader

sys.path.insert(0, str(Path(__file__).parent))
from kafka_topic import Topic, numbered, ran

CLIENTS = pytest.mark.parametrize("client", ["kafka-python", "confluent"])


@pytest.fixture
async def topic(kafka):
    topic = Topic(kafka)
    yield topic
    await topic.log.close()


async def make_again(topic):
    """Deletes the topic, and makes it with one partition as soon as it is gone."""

    def delete():
        admin = KafkaAdminClient(bootstrap_servers=topic.bootstrap)
        admin.delete_topics([topic.name])
        admin.close()

    await asyncio.to_thread(delete)
    await topic.log.close()
    topic.log._counts.clear()
    await topic.log.create(topic.name, 1)


@CLIENTS
async def test_another_topic_is_read_whole_under_names_of_its_own(topic, start, scheduler, eventually, stores, client):
    # Given a tailer that runs, and may go on with another topic
    await topic.log.create(topic.name, 1)
    await topic.put(0, numbered(20))
    scheduler.allow("f")
    source = topic.source(client=client, on_recreated="from_start")
    tailer = await start(0.5, source=source, function="f")
    await eventually(lambda: tailer.overview().settled == 20, 60)
    # When the topic is made again, with more records
    await make_again(topic)
    await topic.put(0, numbered(30, 100))
    # Then all of them run
    await eventually(lambda: set(ran(scheduler)) == {*range(20), *range(100, 130)}, 60)
    await eventually(lambda: [audit.end for audit in tailer.audits()] == [30] and tailer.audits()[0].good, 60)
    (audit,) = tailer.audits()
    assert audit.partition.startswith(f"{topic.name}-0@")
    # And a reader of the past finds the topic that is there, not the one that was
    keys = {name: value for name, value in source.items() if name != "kind"}
    reader = KafkaReader(KafkaSourceOptions.model_validate(keys), CAPABILITIES, tailer.config.name, stores.checkpoints)
    try:
        assert await reader.ends() == {audit.partition: 30}
        assert (await reader.reread(audit.partition, [0, 29])).payloads == [b"100", b"129"]
        assert (await reader.reread(f"{topic.name}-0", [7])).lost == [(7, 7)]
        await tailer.stop()
        await make_again(topic)
        with pytest.raises(PositionsGone, match="on_recreated"):
            await reader.ends()
    finally:
        await reader.close()


async def test_an_offset_that_was_committed_for_the_former_topic_is_not_taken_for_the_new_ones(
    topic, start, scheduler, eventually
):
    # Given a topic that was made again, and a member that told the group once more of the former one
    await topic.log.create(topic.name, 1)
    await topic.put(0, numbered(20))
    scheduler.allow("f")
    source = topic.source(on_recreated="group")
    tailer = await start(0.5, source=source, function="f")
    await topic.knows(0, 20)
    await tailer.stop()
    looking = client_of(KafkaOptions(bootstrap_servers=topic.bootstrap)).topic_admin(
        KafkaOptions(bootstrap_servers=topic.bootstrap)
    )
    former = looking.described([topic.name])[topic.name].id
    await make_again(topic)
    await topic.put(0, numbered(30, 100))

    def tell_late():
        consumer = KafkaConsumer(bootstrap_servers=topic.bootstrap, group_id=topic.name, enable_auto_commit=False)
        place = TopicPartition(topic.name, 0)
        consumer.assign([place])
        consumer.commit({place: OffsetAndMetadata(20, committed_by(looking.cluster(), former), -1)})
        consumer.close()

    await asyncio.to_thread(tell_late)
    looking.close()
    # When it is to go on where the group is, then it runs all
    again = await start(0.5, source=source, function="f")
    await eventually(lambda: again.overview().settled == 30, 60)
    assert ran(scheduler) == [*range(20), *range(100, 130)]


@CLIENTS
async def test_what_clients_say_of_topics_and_of_logs_that_were_cut_off(topic, client):
    options = KafkaOptions(bootstrap_servers=topic.bootstrap, client=client)
    other = KafkaOptions(bootstrap_servers=topic.bootstrap)
    await topic.log.create(topic.name, 2)
    await topic.put(0, numbered(10))

    def look():
        mine, python = client_of(options).topic_admin(options), client_of(other).topic_admin(other)
        try:
            there = mine.described([topic.name, "nothing-of-this-name"])
            place = (topic.name, 0)
            cut = mine.cut_off([ReadUpTo((topic.name, 1), 0, 0), ReadUpTo(place, 15, 0)])
            return (
                there,
                python.described([topic.name]),
                cut,
                mine.cut_off([ReadUpTo(place, 10, 0)]),
                {mine.cluster(), python.cluster()},
            )
        finally:
            mine.close()
            python.close()

    there, theirs, cut, whole, clusters = await asyncio.to_thread(look)
    assert there == theirs == {topic.name: Known(2, there[topic.name].id)} and len(there[topic.name].id) == 22
    assert (cut, whole) == ([None, 10], [None])
    assert len(clusters) == 1 and "" not in clusters
