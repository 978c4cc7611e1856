"""A source that wants to know its checkpoint hears the last one too, when nothing moves any more."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.errors import StaleFence, Unavailable
from tailrace.tailers import checkpoint
from tailrace.tailers.checkpoint import Checkpoint


class Part:
    """A partition of which the frontier is moved by hand."""

    def __init__(self) -> None:
        self.frontier = self.checkpoint = 0

    def mark(self) -> int | None:
        return None if self.frontier == self.checkpoint else self.frontier

    def committed(self, mark: int) -> None:
        self.checkpoint = mark


class Source:
    """A source that notes the checkpoints it hears; it refuses the first so many."""

    def __init__(self, refuses: int = 0) -> None:
        self.heard: list[int] = []
        self._refuses = refuses

    async def settled_below(self, partition: str, position: int) -> None:
        self._refuses -= 1
        if self._refuses >= 0:
            raise Unavailable("not now")
        self.heard.append(position)


class Epoch:
    """An epoch. `taken`: by somebody else."""

    def __init__(self, taken: bool = False) -> None:
        self.renewals, self._taken = 0, taken

    async def commit(self, marks: object) -> None:
        """Commits at once, durably."""

    async def renew(self) -> None:
        self.renewals += 1
        if self._taken:
            raise StaleFence("somebody else has it")


async def run_until_heard(monkeypatch, source, frontiers):
    monkeypatch.setattr(checkpoint, "TRIM_EVERY", 0.2)
    part, wake, moved = Part(), asyncio.Event(), asyncio.Event()
    behind = Checkpoint(source, Epoch(), {"p": part}, SYSTEM_CLOCK, wake, moved.set)
    task = asyncio.create_task(behind.run())
    async with asyncio.timeout(10):
        for frontier in frontiers:
            part.frontier = frontier
            moved.clear()
            wake.set()
            await moved.wait()
        while source.heard[-1:] != [frontiers[-1]]:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_last_of_several_is_heard_though_nothing_moves_after_it(monkeypatch):
    source = Source()
    await run_until_heard(monkeypatch, source, [5, 7, 9])
    assert source.heard == [5, 9], "the first at once, the others together"


async def test_what_the_source_could_not_hear_is_told_again(monkeypatch):
    source = Source(refuses=2)
    await run_until_heard(monkeypatch, source, [5])
    assert source.heard == [5]


async def opened_twice(epoch: Epoch) -> tuple[Checkpoint, Source]:
    """A checkpoint of which the source has heard, and that was opened again since."""
    source, part = Source(), Part()
    behind = Checkpoint(source, epoch, {"p": part}, SYSTEM_CLOCK, asyncio.Event(), lambda: None)
    await behind.opening(asyncio.sleep(0))
    part.frontier = 5
    await behind.finish()
    await behind.tell()
    assert (source.heard, epoch.renewals) == ([5], 0)
    await behind.opening(asyncio.sleep(0))
    return behind, source


async def test_a_source_that_was_opened_again_hears_the_checkpoint_again_from_an_owner_that_is_one_still():
    behind, source = await opened_twice(epoch := Epoch())
    await behind.tell()
    await behind.tell()
    assert (source.heard, epoch.renewals) == ([5, 5], 1)


async def test_one_whose_owner_is_another_by_now_hears_nothing_old():
    behind, source = await opened_twice(Epoch(taken=True))
    with pytest.raises(StaleFence):
        await behind.tell()
    assert source.heard == [5]


async def test_what_was_passed_a_while_ago_is_told_by_an_owner_that_is_one_still():
    """The store may have been put back from a copy since, whose checkpoint has not passed the item."""
    source, part = Source(), Part()
    behind = Checkpoint(source, Epoch(taken=True), {"p": part}, SYSTEM_CLOCK, asyncio.Event(), lambda: None)
    part.frontier = 5
    await behind.commit()
    with pytest.raises(StaleFence):
        await behind.tell()
    assert source.heard == []


class Many(Source):
    """A source that hears of many partitions at once."""

    async def settled_below_each(self, positions):
        self.heard.append(dict(positions))


async def test_what_many_partitions_have_settled_is_told_at_once():
    parts, source = {name: Part() for name in "abc"}, Many()
    behind = Checkpoint(source, Epoch(), parts, SYSTEM_CLOCK, asyncio.Event(), lambda: None)
    parts["a"].frontier, parts["b"].frontier = 5, 7
    assert await behind.commit() == 2
    await behind.tell()
    await behind.tell()
    assert source.heard == [{"a": 5, "b": 7}], "and nobody is told twice"
