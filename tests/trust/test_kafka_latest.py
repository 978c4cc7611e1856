"""`start: latest` or `2h` says where a tailer begins once, not where each partition begins that it meets later."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kafka_scene import Scene, until


@pytest.fixture
async def scene(kafka: str, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(kafka, tmp_path)
    yield scene
    await scene.stop()


@pytest.mark.trust(point=2)
@pytest.mark.long(minutes=0.25)  # a client asks for new partitions now and then only
async def test_a_topic_and_a_partition_that_come_while_it_runs_are_read_whole(scene: Scene) -> None:
    # Given a tailer whose topic is not there yet
    await scene.start(start="latest")

    async def waits() -> bool:
        return "does not exist" in (await scene.tailer()).detail

    await until(waits)
    # When the topic is made, with records from the first moment on
    await scene.make()
    await scene.put(0, 10)
    # Then all of them run
    await until(scene.has_passed(10))
    assert scene.ran() == list(range(10))
    # And so do those of a partition that is added
    await scene.add(2)
    await scene.put(10, 30, partition=1)
    await until(scene.has_passed(40))
    assert scene.ran() == list(range(40))


@pytest.mark.trust(point=2)
async def test_what_was_there_at_the_first_start_is_passed_and_what_comes_between_two_starts_is_not(
    scene: Scene,
) -> None:
    # Given a tailer that was started at the end of a topic, and stopped
    await scene.make()
    await scene.put(0, 10)
    await scene.start(start="latest")
    await until(scene.has_passed(10))
    await scene.stop()
    # When a partition is added, and records come to both
    await scene.add(2)
    await scene.put(10, 10, partition=0)
    await scene.put(20, 10, partition=1)
    await scene.start()
    await until(scene.has_passed(30))
    # Then these run, and no others
    assert scene.ran() == list(range(10, 30))


@pytest.mark.trust(point=2)
@pytest.mark.long(minutes=0.25)
async def test_a_start_that_is_some_time_ago_holds_for_the_first_start_only(scene: Scene) -> None:
    # Given a topic with old and newer records, and a tailer that begins two hours before its first start
    await scene.make()
    await scene.put(0, 10, ago=3 * 3600)
    await scene.put(10, 10, ago=3600)
    await scene.start(start="2h")
    await until(scene.has_passed(20))
    assert scene.ran() == list(range(10, 20))
    await scene.stop()
    # When a partition is added while it is away, with records that are older by now
    await scene.add(2)
    await scene.put(20, 10, partition=1, ago=3 * 3600)
    await scene.start()
    # Then they run
    await until(scene.has_passed(30))
    assert scene.ran() == list(range(10, 30))
