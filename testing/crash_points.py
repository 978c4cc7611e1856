"""Crashes around every durable write of a story, all of them, one after the other.

A *point* is a commit of the embedded stores that changed something. The story is run once whole, which numbers its
points; then once for each point and side of it: the process "dies" just before the commit, or just after it while
nobody has been answered. What is then on the disk is opened again, looked at, and the story goes on to its end; or it
dies once more on that way, at each of its next points, and the third process brings it to the end.

    before   nothing of the write is there, and nobody was told that it is
    after    the write is there, and nobody was told that it is

The death is that of the stores' writer threads; whoever waited for an answer never gets one, and the test ends it.
Writes of one moment are committed one by one here, so that a story has the same points each time it is told.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..assembly.embedded import EmbeddedStores
from ..stores.sqlite import file as sqlite
from .clock import ManualClock

#: Side of a commit.
SIDES = ("before", "after")
#: Seconds that a story may take from a start to its end or its crash.
PATIENCE = 20.0


class Crash(BaseException):
    """Death of the process, raised in the place where it happens."""


class Point(NamedTuple):
    """A durable write: the file and the methods whose writes were committed, such as `state SqliteLedger.write`."""

    file: str
    writes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file} {'+'.join(self.writes)}"


class At(NamedTuple):
    """The place of a crash: at the point of this number, before or after it."""

    number: int
    after: bool


class CrashStory(Protocol):
    """A story whose memory outlives the crash, as the memory of its callers does. `clock` goes on too."""

    clock: ManualClock

    async def act(self, stores: Any) -> None:
        """Does the rest of the work. After a crash it is called again: everything in it may have happened without an
        answer."""

    async def check(self, stores: Any) -> None:
        """Asserts the laws of every moment, right after a start."""

    async def end(self, stores: Any) -> None:
        """Asserts the laws of the end, once everything is done."""


class CrashPoints:
    """The points that were passed, and a class of files that dies at the one asked for (None: nowhere)."""

    def __init__(self, at: At | None = None) -> None:
        self.passed: list[Point] = []
        self.crashed = asyncio.Event()
        self._at = at
        self._dead = False
        self._loop = asyncio.get_running_loop()

    def before(self, point: Point) -> None:
        """Notes the point of a writer that is about to commit, or ends it there if asked to."""
        if not self._dead:
            self.passed.append(point)
        if self._dead or self._at == (len(self.passed) - 1, False):
            self._die()

    def after(self) -> None:
        """Ends a writer that just committed if asked to, or if a write of another file has died meanwhile."""
        if self._dead or self._at == (len(self.passed) - 1, True):
            self._die()

    def _die(self) -> None:
        self._dead = True
        self._loop.call_soon_threadsafe(self.crashed.set)
        raise Crash

    def file(self) -> type[sqlite.SqliteFile]:
        """The class of files whose writers pass these points."""
        points = self

        class CrashingFile(sqlite.SqliteFile):
            """A file whose writer may die around a commit. Nothing is synced: a process dies, not a machine."""

            def __init__(self, path: Path, schema: str, *, name: str, synchronous: str = "OFF") -> None:
                super().__init__(path, schema, name=name, synchronous="OFF")
                self._written: list[str] = []

            def _run(self, connection: Any) -> None:
                try:
                    super()._run(connection)
                except Crash:
                    connection.close()  # what was not committed is gone

            def _transact(self, *arguments: Any, apart: bool) -> None:
                self._written = []
                super()._transact(*arguments, apart=apart)

            def _attempt(self, connection: Any, write: Any, *, apart: bool) -> Any:
                changes = connection.total_changes
                answer = super()._attempt(connection, write, apart=apart)
                name = write.fn.__qualname__.split(".<locals>")[0]
                # What the queue notes when it opens or closes is no point: the next opening notes it again, whatever it
                # finds.
                opening = name in ("SqliteQueue.open", "SqliteQueue.close")
                if connection.total_changes != changes and answer[2] is None and not opening:
                    self._written.append(name)
                return answer

            def _make_durable(self, connection: Any) -> None:
                written, self._written = tuple(self._written), []
                if written:
                    points.before(Point(self.name, written))
                super()._make_durable(connection)
                if written:
                    points.after()

        return CrashingFile


#: Opens what a story acts on: in a folder, with the story's clock, its files of this class.
Opening = Callable[[Path, ManualClock, type[sqlite.SqliteFile]], contextlib.AbstractAsyncContextManager[Any]]


def embedded(folder: Path, clock: ManualClock, file: type[sqlite.SqliteFile]) -> EmbeddedStores:
    """Opens the embedded stores alone."""
    return EmbeddedStores(folder, clock=clock, file=file)


async def explore(
    make: Callable[[], CrashStory], folder: Path, *, again: int | None = 0, opening: Opening = embedded
) -> list[Point]:
    """Tells the story whole, then with a crash on each side of each of its points, each time in a folder of its own;
    then also with a second crash on each side of each of the first `again` points after that one (None: of all).
    Returns the points. Raises AssertionError, with the point, when the story finds something wrong."""
    points = await passed(make, folder, opening=opening)
    with _one_by_one():
        for number, point in enumerate(points):
            for side in SIDES:
                first = At(number, side == "after")
                with _noting(f"with a crash {side} point {number} of {len(points)}: {point}"):
                    later = await _tell(make(), folder / f"{number}-{side}", opening, first)
                    for second, next_point in enumerate(later[:again]):
                        for next_side in SIDES:
                            place = folder / f"{number}-{side}-{second}-{next_side}"
                            with _noting(f"and one {next_side} point {second} after that: {next_point}"):
                                await _tell(make(), place, opening, first, At(second, next_side == "after"))
    return points


@contextlib.contextmanager
def _noting(note: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(note)
        raise


async def passed(make: Callable[[], CrashStory], folder: Path, *, opening: Opening = embedded) -> list[Point]:
    """Tells the story whole and returns its points."""
    with _one_by_one():
        return await _tell(make(), folder / "whole", opening)


async def _tell(story: CrashStory, folder: Path, opening: Opening, *crashes: At) -> list[Point]:
    """Tells the story with these crashes, one after the other. Returns the points of the last process, which ends the
    story."""
    for number, at in enumerate(crashes):
        points = CrashPoints(at)
        await _run(story, folder, opening, points, check=number > 0)
        assert points.crashed.is_set(), "the story has other points than when it was told before"
    points = CrashPoints()
    await _run(story, folder, opening, points, check=bool(crashes))
    assert not points.crashed.is_set()
    return points.passed


async def _run(story: CrashStory, folder: Path, opening: Opening, points: CrashPoints, *, check: bool = False) -> None:
    """Runs a process from its start to the story's end, or to the crash."""
    async with opening(folder, story.clock, points.file()) as stores, asyncio.timeout(PATIENCE):
        if check:
            await story.check(stores)
        acting = asyncio.create_task(story.act(stores))
        crashing = asyncio.create_task(points.crashed.wait())
        try:
            await asyncio.wait({acting, crashing}, return_when=asyncio.FIRST_COMPLETED)
            if points.crashed.is_set():
                return
            await acting
            await story.check(stores)
            await story.end(stores)
        finally:
            for task in (acting, crashing):
                task.cancel()
            await asyncio.gather(acting, crashing, return_exceptions=True)


@contextlib.contextmanager
def _one_by_one() -> Iterator[None]:
    former, sqlite.MAX_GROUP = sqlite.MAX_GROUP, 1
    try:
        yield
    finally:
        sqlite.MAX_GROUP = former
