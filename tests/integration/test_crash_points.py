"""Every durable write of every embedded store, and of the flows over them: a crash before it and one after it.

Each story says how many points it has, and together they pass every method that writes: a new durable write is
noticed here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenes.crash_stories import CallbackStory, EnqueueStory, LogStory, OwnershipStory, QueueStory
from scenes.crash_stories_of_jobs import JobsStory, LivesStory
from scenes.crash_stories_of_rows import (
    ActsStory,
    ControlStory,
    DropsStory,
    FleetStory,
    InventoryStory,
    LettersStory,
    MembersStory,
    ReplaysStory,
    ResultsStory,
    SchedulesStory,
    SegmentsStory,
    StreamRowsStory,
    UsageStory,
)

import tailrace
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.testing.crash_points import explore, passed

STORIES: list[Callable[[], Any]] = [
    QueueStory,
    CallbackStory,
    JobsStory,
    LivesStory,
    LogStory,
    ControlStory,
    ActsStory,
    FleetStory,
    InventoryStory,
    UsageStory,
    SegmentsStory,
    ResultsStory,
    LettersStory,
    MembersStory,
    DropsStory,
    StreamRowsStory,
    ReplaysStory,
    SchedulesStory,
    OwnershipStory,
]
SHORT = [story for story in STORIES if story not in (JobsStory, LivesStory)]


@pytest.mark.parametrize("story", [*STORIES, EnqueueStory], ids=lambda story: story.__name__)
async def test_nothing_told_is_lost_and_nothing_half_written_by_a_crash_at_any_point(
    story: Callable[[], Any], tmp_path: Path
) -> None:
    points = await explore(story, tmp_path)
    assert len(points) == story().points, [str(point) for point in points]


# Of the other stories, and of all in all their moments: the long test below.
async def test_a_second_crash_while_the_first_is_recovered_from_loses_nothing_either(tmp_path: Path) -> None:
    await explore(OwnershipStory, tmp_path, again=1)


@pytest.mark.long(minutes=0.1)
@pytest.mark.parametrize("story", [*SHORT, EnqueueStory], ids=lambda story: story.__name__)
async def test_a_second_crash_at_any_point_after_any_first_loses_nothing(
    story: Callable[[], Any], tmp_path: Path
) -> None:
    await explore(story, tmp_path, again=None)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(JobsStory, marks=pytest.mark.long(minutes=4.3)),
        pytest.param(LivesStory, marks=pytest.mark.long(minutes=0.4)),
    ],
    ids=lambda story: story.__name__,
)
async def test_nor_in_a_tree_of_jobs_whose_points_are_many(story: Callable[[], Any], tmp_path: Path) -> None:
    await explore(story, tmp_path, again=None)


def writing_methods() -> set[str]:
    """Methods of the embedded stores that ask their file's writer for something, as class.method."""
    found: set[str] = set()
    stores = Path(tailrace.__file__).parent / "stores"
    for path in (*stores.rglob("sqlite*.py"), *stores.rglob("sqlite/*.py")):
        for class_ in [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]:
            for method in class_.body:
                calls = {ast.unparse(node.func) for node in ast.walk(method) if isinstance(node, ast.Call)}
                if calls & {"self._file.write", "self._file.write_when"}:
                    found.add(f"{class_.name}.{getattr(method, 'name', '')}")
    return found


async def test_the_stories_pass_every_method_that_writes(tmp_path: Path) -> None:
    points = [point for story in STORIES for point in await passed(story, tmp_path / story.__name__)]
    written = {name for point in points for name in point.writes}
    of_spools = {name for name in writing_methods() if name.startswith("SqliteSpool.")}  # test_spool_crashes.py
    read = {"SqliteQueue.height", "SqliteQueue.open", "SqliteQueue.tally", "SqliteJobs.take_events"}  # in the writer
    set_back = {"SqliteQueue.rise"}  # test_set_back.py
    assert written == writing_methods() - of_spools - read - set_back


class Broken(ResultsStory):
    """Tells of a result before it is kept."""

    async def act(self, stores: EmbeddedStores) -> None:
        if not self._done:
            self._done = 1
            await stores.results.put({"a": b"1"})
        await super().act(stores)


async def test_a_story_with_a_hole_is_caught_and_the_point_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        await explore(Broken, tmp_path)
    assert any("before point 0 of 2: state SqliteResults.put" in note for note in caught.value.__notes__)


class BrokenAgain(ResultsStory):
    """Recovers by telling of a result before it is kept."""

    async def act(self, stores: EmbeddedStores) -> None:
        if self._told and not self._done:
            self._done = 1
            await stores.results.put({"a": b"1"})
        self._told = True
        await super().act(stores)

    _told = False


async def test_a_hole_in_the_recovery_is_caught_by_the_second_crash_alone(tmp_path: Path) -> None:
    await explore(BrokenAgain, tmp_path / "one")
    with pytest.raises(AssertionError) as caught:
        await explore(BrokenAgain, tmp_path / "two", again=1)
    assert any("and one before point 0 after that" in note for note in caught.value.__notes__)
