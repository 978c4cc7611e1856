"""A partition that lost records which were read (an unclean election, a disk that was put back): others stand in their
place, and run."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.bench.kafka_nodes import KafkaCluster

sys.path.insert(0, str(Path(__file__).parent))
from kafka_scene import Scene


@pytest.fixture
async def scene(own_kafka: KafkaCluster, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(own_kafka.bootstrap, tmp_path)
    yield scene
    await scene.stop()


class Disk:
    """The broker's copy of the scene's partition, which is put back as it was."""

    def __init__(self, cluster: KafkaCluster, scene: Scene) -> None:
        (self._node,) = cluster.nodes
        self._there = self._node.folder / "data" / f"{scene.topic}-0"
        self._kept = self._node.folder / "kept"

    async def keep(self) -> None:
        await self._restart(lambda: shutil.copytree(self._there, self._kept))

    async def put_back(self) -> None:
        def put() -> None:
            shutil.rmtree(self._there)
            shutil.copytree(self._kept, self._there)

        await self._restart(put)

    async def _restart(self, meanwhile: object) -> None:
        def restart() -> None:
            self._node.kill()
            meanwhile()  # type: ignore[operator]
            self._node.start()
            self._node.wait()

        await asyncio.to_thread(restart)


@pytest.mark.trust(point=2)
@pytest.mark.long(minutes=0.6)
async def test_records_in_the_place_of_others_that_were_read_run(own_kafka: KafkaCluster, scene: Scene) -> None:
    # Given a tailer that has read 150 records, and is stopped
    disk = Disk(own_kafka, scene)
    await scene.make()
    await scene.put(0, 100)
    await disk.keep()
    await scene.put(100, 50)
    await scene.start()
    await scene.have_run(150)
    await scene.stop()
    # When the log loses 50 of them, and 120 others come
    await disk.put_back()
    await scene.put(1000, 120)
    await scene.start()
    # Then the tailer runs none of them, and says why
    stopped = await scene.ends(150)
    assert len(scene.ran()) == 150
    assert stopped.state == "failed" and "from 100 on" in stopped.detail and "on_recreated" in stopped.detail
    # And its audit says what it has read
    assert [(audit.end, audit.good) for audit in await scene.audits()] == [(150, True)]
    # And all of them run, once it is told so
    await scene.stop()
    await scene.start(on_recreated="from_start")
    await scene.have_run(270)
    assert scene.ran() == [*range(150), *range(1000, 1120)]


@pytest.mark.trust(point=2)
@pytest.mark.long(minutes=0.6)
async def test_a_tailer_that_runs_while_records_are_lost_says_so_and_what_it_has_read(
    own_kafka: KafkaCluster, scene: Scene
) -> None:
    # Given a tailer that has read 150 records, and runs
    disk = Disk(own_kafka, scene)
    await scene.make()
    await scene.put(0, 100)
    await disk.keep()
    await scene.put(100, 50)
    await scene.start(client="confluent")
    await scene.have_run(150)
    # When the log loses 50 of them, and 120 others come
    await disk.put_back()
    await scene.put(1000, 120)
    # Then the tailer runs none of them, says why, and what it has read
    stopped = await scene.ends(150)
    assert stopped.state == "failed" and "on_recreated" in stopped.detail
    assert [(audit.end, audit.good) for audit in await scene.audits()] == [(150, True)]
    # And all of them run, once it is told so
    await scene.stop()
    await scene.start(on_recreated="from_start")
    await scene.have_run(270)
    assert scene.ran() == [*range(150), *range(1000, 1120)]
