"""A source that wants to know its checkpoint hears the last one too, when nothing moves any more."""

from __future__ import annotations

import asyncio

from tailrace.sdk.clock import SYSTEM_CLOCK
from tailrace.sdk.model.errors import Unavailable
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
    """Notes what it hears; refuses the first so many times."""

    def __init__(self, refuses: int = 0) -> None:
        self.heard: list[int] = []
        self._refuses = refuses

    async def settled_below(self, partition: str, position: int) -> None:
        self._refuses -= 1
        if self._refuses >= 0:
            raise Unavailable("not now")
        self.heard.append(position)


class Epoch:
    async def commit(self, marks: object) -> None:
        """Durable at once."""


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
