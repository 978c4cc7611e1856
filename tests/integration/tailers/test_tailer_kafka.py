"""A tailer over a topic: partitions come and go while it runs, each with an owner of its own, and nothing is lost."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

from tailrace.model.drop import Cause
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.tailers.sources import kafka_group
from tailrace.tailers.sources.kafka import KafkaSourceOptions
from tailrace.tailers.sources.kafka_group import KafkaGroup
from tailrace.tailers.sources.kafka_python_member import PythonMember

sys.path.insert(0, str(Path(__file__).parent))
from kafka_topic import Topic, numbered, ran


@pytest.fixture
async def topic(kafka):
    topic = Topic(kafka)
    yield topic
    await topic.log.close()


@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
async def test_a_topic_is_done_once_and_its_group_knows(topic, start, scheduler, eventually, client):
    # Given a topic of three partitions with headers
    await topic.log.create(topic.name, 3)
    for partition in range(3):
        await topic.put(partition, numbered(20, partition * 20), (("traceparent", "00-1-2-01"),))
    scheduler.allow("f")
    # When a tailer reads it
    tailer = await start(0.5, source=topic.source(client=client), function="f")
    await eventually(lambda: tailer.overview().settled == 60, 60)
    # Then each item ran once, with its headers, and the group's own offsets say so
    assert ran(scheduler) == list(range(60))
    (extra,) = {flight.extras[0].headers for flight in scheduler.flights}
    assert extra == (("traceparent", "00-1-2-01"),)
    for partition in range(3):
        await topic.knows(partition, 20)
    await tailer.stop()
    # And another tailer goes on from there
    await topic.put(0, numbered(5, 60))
    again = await start(0.5, source=topic.source(client=client), function="f")
    await eventually(lambda: again.overview().settled == 5, 60)
    assert ran(scheduler) == list(range(65))


async def test_partitions_move_to_a_second_tailer_and_back(topic, start, scheduler, eventually):
    # Given a tailer with four partitions
    await topic.log.create(topic.name, 4)
    for partition in range(4):
        await topic.put(partition, numbered(25, partition * 25))
    scheduler.allow("f")
    first = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: first.overview().settled == 100, 60)
    # When a second one joins the group, it gets two of them, by their rows
    second = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: len(first._pump.pumps) == 2 == len(second._pump.pumps), 60)
    for partition in range(4):
        await topic.put(partition, numbered(25, 100 + partition * 25))
    await eventually(lambda: first.overview().settled + second.overview().settled == 200, 60)
    assert second.overview().settled == 50
    # And when it leaves, the first one has all of them again
    await second.stop()
    for partition in range(4):
        await topic.put(partition, numbered(25, 200 + partition * 25))
    await eventually(lambda: first.overview().settled == 250, 60)
    # Then nothing was lost and nothing ran twice
    assert ran(scheduler) == list(range(300))


async def test_partitions_that_are_given_back_while_they_are_left_are_let_go_of(topic, start, scheduler, eventually):
    # Given a tailer with an item out in each of two partitions, which waits long for them
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    await topic.log.create(topic.name, 2)
    for partition in range(2):
        await topic.put(partition, numbered(1, partition))
    source = topic.source(release_within="2m")
    first = await start(0.5, source=source, function="f")
    await eventually(lambda: first.overview().in_flight == 2, 60)
    # When one is taken away, and given back before its item has ended
    second = await start(0.5, source=source, function="f")
    await eventually(lambda: len(first._pump._tasks) == 1, 60)
    await second.stop()
    await eventually(lambda: len(first._pump._tasks) == 2, 60)
    assert first.overview().in_flight == 2
    # And the tailer ends
    await first.stop()
    # Then nobody holds either any more, and another one has both
    scheduler.decide = lambda flight, index: Ended(Outcome.SUCCESS)
    third = await start(0.5, source=source, function="f")
    await eventually(lambda: third.overview().settled == 2, 60)


async def test_a_failed_item_does_not_hold_the_group_back_and_one_in_flight_does(
    topic, start, scheduler, parking, eventually
):
    # Given a topic of which one item fails and one does not end
    await topic.put(0, numbered(30))
    scheduler.allow("f")
    ends = {b"7": Ended(Outcome.RETRY, "boom"), b"20": None}
    scheduler.decide = lambda flight, index: ends.get(flight.payloads[index], Ended(Outcome.SUCCESS))
    tailer = await start(0.5, source=topic.source(), function="f")
    # When all others are done
    await eventually(lambda: tailer.overview().settled == 28 and tailer.overview().parked == 1, 60)
    # Then the checkpoint waits at the one, and what is done above it is not run again
    await topic.knows(0, 20)
    await tailer.stop()
    scheduler.flights.clear()
    scheduler.decide = lambda flight, index: Ended(Outcome.SUCCESS)
    again = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: again.overview().settled == 1, 60)
    assert ran(scheduler) == [20]


async def test_what_runs_long_does_not_hold_the_group_back(topic, start, scheduler, parking, eventually):
    # Given a topic of which one item does not end
    await topic.put(0, numbered(30))
    scheduler.allow("f")
    scheduler.decide = lambda flight, index: None if flight.payloads[index] == b"20" else Ended(Outcome.SUCCESS)
    tailer = await start(0.5, source=topic.source(), function="f", window={"detach_after": "0.3s"})
    # When all others are done, then the group's own offset has passed it while it runs, and a guard keeps its payload
    await topic.knows(0, 30)
    assert [(item.position, item.payload) for item in parking.items] == [(20, b"20")]
    assert tailer.overview().in_flight == 1
    # And its end is its end
    [(flight, index)] = [(each, each.payloads.index(b"20")) for each in scheduler.flights if b"20" in each.payloads]
    scheduler.session.end(flight, index, Ended(Outcome.SUCCESS))
    await eventually(lambda: tailer.overview().settled == 30, 60)
    assert ran(scheduler) == list(range(30))


async def test_partitions_that_are_added_are_read(topic, start, scheduler, eventually):
    await topic.put(0, numbered(5))
    scheduler.allow("f")
    tailer = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: tailer.overview().settled == 5, 60)
    await topic.put(1, numbered(5, 5))
    await eventually(lambda: tailer.overview().settled == 10, 60)


async def test_markers_and_aborted_records_are_passed(topic, start, scheduler, eventually):
    # Given a transaction that was aborted, and one that was not
    await topic.log.create(topic.name, 1)

    def produce():
        producer = KafkaProducer(bootstrap_servers=topic.bootstrap, transactional_id=topic.name)
        producer.init_transactions()
        for payloads, end in (
            (numbered(3, 100), producer.abort_transaction),
            (numbered(3), producer.commit_transaction),
        ):
            producer.begin_transaction()
            for payload in payloads:
                producer.send(topic.name, payload, partition=0)
            producer.flush()
            end()
        producer.close()

    await asyncio.to_thread(produce)
    scheduler.allow("f")
    # When it is read
    tailer = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: tailer.overview().settled == 3, 60)
    # Then only what was committed ran, and the frontier has passed the markers: 3 + 1 + 3 + 1 positions
    assert ran(scheduler) == [0, 1, 2]
    await eventually(lambda: tailer.audits()[0].end == 8, 60)
    await topic.knows(0, 8)


@pytest.mark.parametrize("tombstones", ["deliver", "skip"])
async def test_tombstones_are_delivered_or_skipped_as_the_file_says(topic, start, scheduler, eventually, tombstones):
    await topic.log.create(topic.name, 1)

    def produce():
        producer = KafkaProducer(bootstrap_servers=topic.bootstrap)
        for key, value in ((b"a", b"1"), (b"a", None), (b"b", b"2")):
            producer.send(topic.name, value, key, partition=0)
        producer.close()

    await asyncio.to_thread(produce)
    scheduler.allow("f")
    tailer = await start(0.5, source=topic.source(tombstones=tombstones), function="f")
    await eventually(lambda: tailer.overview().settled == (3 if tombstones == "deliver" else 2), 60)
    payloads = [payload for flight in scheduler.flights for payload in flight.payloads]
    assert payloads == ([b"1", b"", b"2"] if tombstones == "deliver" else [b"1", b"2"])
    if tombstones == "deliver":
        (headers,) = {extra.headers for flight in scheduler.flights for extra in flight.extras.values()}
        assert headers == (("kafka.tombstone", "1"),)


@pytest.mark.parametrize("allowed", [False, True])
async def test_what_retention_took_stops_the_tailer_unless_its_file_allows_it(
    topic, start, scheduler, stores, eventually, allowed
):
    # Given a tailer that did ten of thirty items, after which the topic lost twenty
    await topic.put(0, numbered(10))
    scheduler.allow("f")
    keys = {"source": topic.source(), "function": "f"} | ({"allow_loss": ["retention"]} if allowed else {})
    tailer = await start(0.5, **keys)
    await eventually(lambda: tailer.overview().settled == 10, 60)
    await tailer.stop()
    await topic.put(0, numbered(20, 10))
    await topic.log.trim(topic.name, 0, 20)
    # When it starts again
    again = await start(0.5, **keys)
    if not allowed:
        await eventually(lambda: again.overview().state == "failed", 60)
        assert "allow_loss: [retention]" in again.overview().detail and "10 to 19" in again.overview().detail
        return
    # Then what is lost is counted and noted, and the rest is done
    await eventually(lambda: again.overview().settled == 10, 60)
    assert again.overview().lost == 10
    (drop,) = await stores.drops.within("t", f"{topic.name}-0", 0, 60)
    assert (drop.first, drop.last, drop.cause) == (10, 19, Cause.RETENTION)


async def test_a_new_tailer_goes_on_where_the_group_was(topic, start, scheduler, eventually):
    # Given a group that some other consumer has used up to 12
    await topic.put(0, numbered(20))

    def consume():
        consumer = KafkaConsumer(
            topic.name, bootstrap_servers=topic.bootstrap, group_id=topic.name, auto_offset_reset="earliest"
        )
        while not (records := consumer.poll(1000, max_records=12)):
            pass
        assert sum(map(len, records.values())) == 12
        consumer.commit()
        consumer.close(autocommit=False)

    await asyncio.to_thread(consume)
    scheduler.allow("f")
    tailer = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: tailer.overview().settled == 8, 60)
    assert ran(scheduler) == list(range(12, 20))


async def test_a_topic_that_is_not_there_is_named_and_read_when_it_comes(topic, start, scheduler, eventually):
    scheduler.allow("f")
    tailer = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: "create it" in tailer.overview().detail, 60)
    assert tailer.overview().state == "disconnected" and topic.name in tailer.overview().detail
    await topic.put(0, numbered(3))
    await eventually(lambda: tailer.overview().settled == 3, 60)


async def test_a_deleted_topic_is_named(topic, start, scheduler, eventually):
    await topic.put(0, numbered(3))
    scheduler.allow("f")
    tailer = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: tailer.overview().settled == 3, 60)

    def delete():
        admin = KafkaAdminClient(bootstrap_servers=topic.bootstrap)
        admin.delete_topics([topic.name])
        admin.close()

    await asyncio.to_thread(delete)
    await eventually(lambda: "does not exist" in tailer.overview().detail, 60)


async def test_a_member_that_hangs_is_made_anew(topic, start, scheduler, eventually, monkeypatch):
    # Given a tailer whose member gives nothing any more, as if there were nothing
    await topic.put(0, numbered(3))
    scheduler.allow("f")
    tailer = await start(0.5, source=topic.source(hung_after="1s"), function="f")
    await eventually(lambda: tailer.overview().settled == 3, 60)
    poll = PythonMember.poll
    first = []

    def hangs(member, seconds):
        first.append(member)
        polled = poll(member, seconds)
        return [] if member is first[0] else polled

    monkeypatch.setattr(PythonMember, "poll", hangs)
    # When there is more
    await topic.put(0, numbered(3, 3))
    # Then another member is made, which reads it
    await eventually(lambda: tailer.overview().settled == 6, 60)
    assert ran(scheduler) == list(range(6))


@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
async def test_a_member_before_an_open_transaction_does_not_hang(
    topic, start, scheduler, eventually, monkeypatch, client
):
    # Given a tailer that has read all there is before a transaction that stays open
    looks = []
    monkeypatch.setattr(kafka_group, "LOOK_EVERY", 0.2)
    monkeypatch.setattr(KafkaGroup, "_see", lambda group, problem: looks.append((group._session, problem)))
    await topic.put(0, numbered(3))
    scheduler.allow("f")
    tailer = await start(0.5, source=topic.source(client=client, hung_after="1s"), function="f")
    await eventually(lambda: tailer.overview().settled == 3, 60)

    def begin():
        producer = KafkaProducer(bootstrap_servers=topic.bootstrap, transactional_id=topic.name)
        producer.init_transactions()
        producer.begin_transaction()
        for payload in numbered(3, 3):
            producer.send(topic.name, payload, partition=0)
        producer.flush()
        return producer

    producer = await asyncio.to_thread(begin)
    before = len(looks)
    # When it is looked at for longer than a member may hang, then it is the same one
    await eventually(lambda: len(looks) > before + 8, 60)
    assert len({id(session) for session, _ in looks}) == 1 and {problem for _, problem in looks} == {""}
    # And reads the records when they are committed
    await asyncio.to_thread(producer.commit_transaction)
    await eventually(lambda: tailer.overview().settled == 6, 60)
    await asyncio.to_thread(producer.close)


async def test_a_watch_over_the_group_that_fails_begins_again_as_another_member(
    topic, start, scheduler, eventually, monkeypatch
):
    # Given a tailer whose looks at its group from outside fail as nobody foresaw, once, after it was opened
    monkeypatch.setattr(kafka_group, "LOOK_EVERY", 0.2)
    look, looks = KafkaGroup._group_is_ours, []

    async def fails(group):
        looks.append(group)
        if len(looks) == 2:
            raise ValueError("planted")
        await look(group)

    monkeypatch.setattr(KafkaGroup, "_group_is_ours", fails)
    await topic.put(0, numbered(3))
    scheduler.allow("f")
    # When it reads, Then its items run once, and somebody looks on
    tailer = await start(0.5, source=topic.source(), function="f")
    await eventually(lambda: tailer.overview().settled >= 3 and len(looks) > 4, 60)
    await topic.put(0, numbered(3, 3))
    await eventually(lambda: tailer.overview().settled >= 6, 60)
    assert ran(scheduler) == list(range(6))


async def test_a_partition_that_was_paused_while_others_were_read_is_heard_of_again(topic):
    # Given a member that pauses every partition for a moment whenever it brought something, as a slow reader would
    each, places = 16_000, [(topic.name, partition) for partition in range(4)]
    await topic.log.create(topic.name, 4)
    for partition in range(4):
        for first in range(0, each, 1000):
            await topic.put(partition, numbered(1000, first))
    found = dict.fromkeys(places, 0)

    def read():
        member = PythonMember(KafkaSourceOptions.model_validate(without_kind(topic.source())), "tailrace")
        paused, limit = {}, time.monotonic() + 30
        while sum(found.values()) < 4 * each and time.monotonic() < limit:
            go = [place for place, until in paused.items() if until < time.monotonic()]
            member.resume(go)
            for place in go:
                del paused[place]
            polled = member.poll(0.01)
            for place in member.assigned()[1]:
                member.seek(place, 0)
                member.resume([place])
            for one in polled:
                found[one.place] += len(one.records.positions)
                member.pause([one.place])
                paused[one.place] = time.monotonic() + 0.02
        member.close()

    # Then all of them come to their end
    await asyncio.to_thread(read)
    assert found == dict.fromkeys(places, each)


def without_kind(source):
    return {name: value for name, value in source.items() if name != "kind"}
