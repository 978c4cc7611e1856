"""A topic that is deleted and made again is another topic: none of its records is passed over as if it were known.
How it is read then is tested in tests/integration/tailers/test_tailer_kafka_lives.py."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kafka_scene import Scene


@pytest.fixture
async def scene(kafka: str, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(kafka, tmp_path)
    yield scene
    await scene.stop()


@pytest.mark.trust(point=2)
async def test_a_topic_made_again_while_the_tailer_is_stopped_is_not_read_from_the_middle(scene: Scene) -> None:
    # Given a tailer that has read a topic, and is stopped
    await scene.make()
    await scene.put(0, 20)
    await scene.start()
    await scene.have_run(20)
    await scene.stop()
    # When the topic is deleted and made again, with more records than before
    await scene.delete()
    await scene.make()
    await scene.put(100, 30)
    await scene.start()
    # Then the tailer runs none of them, and says why
    stopped = await scene.ends(20)
    assert scene.ran() == list(range(20))
    assert stopped.state == "failed" and "on_recreated" in stopped.detail
    assert not any(audit.good and audit.end == 30 for audit in await scene.audits())


@pytest.mark.trust(point=2)
async def test_a_topic_made_again_while_the_tailer_runs_is_not_read_from_the_middle(scene: Scene) -> None:
    # Given a tailer that reads a topic with librdkafka
    await scene.make()
    await scene.put(0, 20)
    await scene.start(client="confluent")
    await scene.have_run(20)
    # When the topic is deleted and made again, with more records than before
    await scene.delete()
    await scene.make()
    await scene.put(100, 30)
    # Then the tailer stops, and says why
    stopped = await scene.ends(20)
    assert stopped.state == "failed", scene.ran()
    assert "on_recreated" in stopped.detail
