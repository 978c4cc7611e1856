"""Kafka with the settings that it has by default: it makes topics that somebody asks for, and bounds time stamps; with
groups of the new protocol, and transactions that are open."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer

from tailrace.bench.kafka_nodes import KafkaCluster
from tailrace.foundation.clock import SystemClock
from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record

sys.path.insert(0, str(Path(__file__).parent))
from kafka_scene import Scene, until

DEFAULTS = {"auto.create.topics.enable": "true", "log.message.timestamp.after.max.ms": "3600000"}


@pytest.fixture(scope="module")
def default_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with KafkaCluster(tmp_path_factory.mktemp("kafka") / "nodes", settings=DEFAULTS) as cluster:
        yield cluster.bootstrap


@pytest.fixture
async def scene(default_kafka: str, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(default_kafka, tmp_path)
    yield scene
    await scene.stop()


class Stranger:
    """A member of another application, with the new group protocol; its thread polls until it leaves."""

    def __init__(self, scene: Scene) -> None:
        settings = {"bootstrap.servers": scene.kafka, "group.id": scene.topic, "client.id": "theirs"}
        self._consumer = Consumer(settings | {"group.protocol": "consumer", "auto.offset.reset": "earliest"})
        self._consumer.subscribe([scene.topic])
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()
        self.partitions = 0

    def _poll(self) -> None:
        while not self._over.is_set():
            self._consumer.poll(0.1)
            self.partitions = len(self._consumer.assignment())
        self._consumer.close()

    async def leave(self) -> None:
        self._over.set()
        await asyncio.to_thread(self._thread.join)


@pytest.mark.trust(point=20)
async def test_a_group_of_the_new_protocol_is_left_to_its_members(scene: Scene) -> None:
    # Given another application in the group, with the new protocol
    await scene.make(2)
    await scene.put(0, 10)
    stranger = Stranger(scene)
    try:
        await until(_that(lambda: stranger.partitions == 2))
        # When a tailer is to read in its name
        await scene.start(client="kafka-python", session_timeout="6s")

        async def is_placed() -> bool:
            tailer = await scene.tailer()
            return "another application" in tailer.detail or stranger.partitions < 2

        await until(is_placed)
        # Then it stays out, and says why
        assert stranger.partitions == 2 and "another application" in (await scene.tailer()).detail
    finally:
        await stranger.leave()
    # And reads once they have left
    await scene.put(10, 10, partition=1)
    await until(_that(lambda: 19 in scene.ran()))


@pytest.mark.trust(point=20)
async def test_a_topic_that_was_deleted_stays_so(scene: Scene) -> None:
    # Given a tailer that reads a topic
    await scene.make()
    await scene.put(0, 10)
    await scene.start(client="kafka-python")
    await scene.have_run(10)
    # When the topic is deleted
    await scene.delete()

    async def is_missed() -> bool:
        return "does not exist" in (await scene.tailer()).detail

    # Then it is missed, and does not come back
    await until(is_missed)
    with pytest.raises(TimeoutError):
        await until(_that(lambda: scene.topic in _topics(scene)), 3)


@pytest.mark.trust(point=19)
async def test_what_an_open_transaction_commits_after_the_first_start_is_read(scene: Scene) -> None:
    # Given a topic with records before and in an open transaction
    await scene.make()
    await scene.put(0, 5)
    producer = Producer({"bootstrap.servers": scene.kafka, "transactional.id": scene.topic})

    def begin() -> None:
        producer.init_transactions(20)
        producer.begin_transaction()
        for number in range(5, 10):
            producer.produce(scene.topic, b'{"n": %d}' % number, partition=0)
        producer.flush(20)

    await asyncio.to_thread(begin)
    # When a tailer begins at the end with librdkafka, and the transaction is committed then
    await scene.start(client="confluent", start="latest")

    async def has_begun() -> bool:
        return bool(await scene.audits())

    await until(has_begun)
    await asyncio.to_thread(producer.commit_transaction, 20)
    await scene.put(10, 1)
    # Then its records run
    await until(_that(lambda: 10 in scene.ran()))
    assert scene.ran() == list(range(5, 11))


class Ahead(SystemClock):
    """The clock of a node that is two hours ahead."""

    def wall(self) -> float:
        return time.time() + 7200


@pytest.mark.trust(point=20)
@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
async def test_a_log_on_kafka_takes_records_of_a_node_whose_clock_is_ahead(default_kafka: str, client: str) -> None:
    log = KafkaLog(KafkaOptions(bootstrap_servers=default_kafka, client=client), Ahead(), prefix=f"{client}-")  # type: ignore[arg-type]
    try:
        assert await log.append("due.send", 0, [Record(b"x")]) == 0
        found = await log.read("due.send", 0, 0, 10, 1000)
        assert found.payloads == [b"x"] and found.times[0] > time.time() + 7000
    finally:
        await log.close()


def _topics(scene: Scene) -> set[str]:
    consumer = KafkaConsumer(bootstrap_servers=scene.kafka, group_id=None)
    try:
        return set(consumer.topics())
    finally:
        consumer.close()


def _that(true: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def asked() -> bool:
        return await asyncio.to_thread(true)

    return asked
