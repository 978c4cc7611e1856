"""A fail-over to a mirror: another cluster, the same topic at other offsets, and the group's offsets translated."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition

from tailrace.bench.kafka_nodes import KafkaCluster

sys.path.insert(0, str(Path(__file__).parent))
from kafka_scene import Scene


@pytest.fixture
async def scene(kafka: str, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(kafka, tmp_path)
    yield scene
    await scene.stop()


@pytest.mark.trust(point=2)
@pytest.mark.long(minutes=0.15)
async def test_a_mirror_is_read_from_the_offsets_that_the_group_has_there(
    scene: Scene, own_kafka: KafkaCluster
) -> None:
    # Given a tailer that has read 100 records, and a mirror that began at the 51st, with the group's offset translated
    await scene.make()
    await scene.put(0, 100)
    await scene.start()
    await scene.have_run(100)
    await scene.stop()
    scene.kafka = own_kafka.bootstrap
    await scene.make()
    await scene.put(50, 150)
    await asyncio.to_thread(translate, scene, 50)
    # When its file names the mirror
    await scene.start(bootstrap_servers=own_kafka.bootstrap)
    # Then it runs nothing, and says why
    stopped = await scene.ends(100)
    assert scene.ran() == list(range(100))
    assert stopped.state == "failed" and "in another cluster" in stopped.detail and "on_recreated" in stopped.detail
    # And goes on where the group was, once it is told so
    await scene.stop()
    await scene.start(on_recreated="group")
    await scene.have_run(200)
    assert scene.ran() == list(range(200))
    assert [(audit.first, audit.end, audit.good) for audit in await scene.audits()] == [(50, 150, True)]


def translate(scene: Scene, offset: int) -> None:
    """Commits the group's offset in the mirror, as MirrorMaker does."""
    consumer = KafkaConsumer(bootstrap_servers=scene.kafka, group_id=scene.topic, enable_auto_commit=False)
    place = TopicPartition(scene.topic, 0)
    consumer.assign([place])
    consumer.commit({place: OffsetAndMetadata(offset, "", -1)})
    consumer.close()
