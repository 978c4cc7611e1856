"""A partition's leader moves to another broker, as when an operator balances a cluster, while transactions are open."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from tailrace.bench.kafka_nodes import KafkaCluster

sys.path.insert(0, str(Path(__file__).parent))
from kafka_scene import Scene, until

PREFERRED = 0


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path_factory.mktemp("kafka"), 3) as cluster:
        yield cluster


@pytest.fixture
async def scene(brokers: KafkaCluster, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(brokers.bootstrap, tmp_path)
    yield scene
    await scene.stop()


class Partition:
    """The scene's one partition, of which each broker has a copy."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._admin = KafkaAdminClient(bootstrap_servers=scene.kafka)

    def make(self) -> None:
        self._admin.create_topics([NewTopic(self._scene.topic, 1, 3, topic_configs={"min.insync.replicas": "2"})])
        self._admin.wait_for_topics([self._scene.topic])

    def _now(self) -> tuple[int, list[int]]:
        """The leader, and the brokers that have copies, in order."""
        (topic,) = self._admin.describe_topics([self._scene.topic])
        (found,) = topic["partitions"]
        return found["leader_id"], found["replica_nodes"]

    async def move(self) -> None:
        """Has the next broker lead: a reassignment names it first, an election makes it the leader."""
        leader, replicas = await asyncio.to_thread(self._now)
        place, next_one = TopicPartition(self._scene.topic, 0), replicas.index(leader) + 1
        turned = [*replicas[next_one:], *replicas[:next_one]]
        await asyncio.to_thread(self._admin.alter_partition_reassignments, {place: turned})

        async def moved() -> bool:
            with contextlib.suppress(KafkaError):  # not needed, or not possible yet
                await asyncio.to_thread(self._admin.elect_leaders, PREFERRED, {place.topic: [0]})
            return (await asyncio.to_thread(self._now))[0] == turned[0]

        await until(moved)

    def close(self) -> None:
        self._admin.close()


@pytest.mark.trust(point=22)
@pytest.mark.long(minutes=0.5)
@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
async def test_what_transactions_commit_across_a_move_of_their_leader_runs_once_and_nothing_else(
    scene: Scene, client: str
) -> None:
    # Given a tailer of a topic of which three brokers have copies
    partition = Partition(scene)
    await asyncio.to_thread(partition.make)
    await scene.start(client=client)
    producer = Producer({"bootstrap.servers": scene.kafka, "transactional.id": scene.topic})
    await asyncio.to_thread(producer.init_transactions, 30)

    def send(first: int, count: int) -> None:
        for number in range(first, first + count):
            producer.produce(scene.topic, b'{"n": %d}' % number, partition=0)
        producer.flush(30)

    try:
        # When the leader moves in the middle of two transactions, of which the second one is aborted
        for turn in range(2):
            producer.begin_transaction()
            await asyncio.to_thread(send, 100 * turn, 20)
            await partition.move()
            await asyncio.to_thread(send, 100 * turn + 20, 20)
            end = producer.abort_transaction if turn % 2 else producer.commit_transaction
            await asyncio.to_thread(end, 30)
        await scene.put(1000, 1)
        # Then what was committed ran, once, and nothing of those that were aborted
        await until(lambda: _ran(scene, 1000))
        await scene.have_run(41)
        assert scene.ran() == [*range(40), 1000]
        # And the audit has every position: 80 records, 2 markers and the last one
        (audit,) = await scene.audits()
        assert audit.good and audit.end == 83
    finally:
        partition.close()


async def _ran(scene: Scene, number: int) -> bool:
    return number in scene.ran()
