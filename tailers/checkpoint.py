"""The checkpoint of a stream tailer, written behind the frontiers of its partitions; and the stream trimmed behind it,
where the source forgets what its checkpoint has passed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, runtime_checkable

from ..sdk.clock import Clock
from ..sdk.model.errors import Unavailable
from ..sdk.source import StreamSource
from .partition import Partition
from .takeover.epoch import Epoch

#: Checkpoint writes begin at least this far apart, seconds.
COMMIT_EVERY = 0.02
#: … and so far behind one that moved nothing: an item on its way into a store holds the frontier for that long, and
#: what settles above it meanwhile would be written again and again.
HELD_UP_EVERY = 0.1
#: Those of what is due: a restart skips by their rows the copies that it reads again, so they may wait for each other.
DUE_COMMIT_EVERY = 1.0
#: … and longer after one of many functions: so many seconds for each, 10 s for 200 of them.
DUE_COMMIT_OF_EACH = 0.05
#: A stream behind the checkpoint is trimmed at most this often, seconds.
TRIM_EVERY = 1.0


@runtime_checkable
class Trimmed(Protocol):
    """A source that forgets what its checkpoint has passed."""

    async def settled_below(self, partition: str, position: int) -> None: ...


@runtime_checkable
class TrimmedTogether(Protocol):
    """A source that forgets in many partitions at once."""

    async def settled_below_each(self, positions: Mapping[str, int]) -> None: ...


class Checkpoint:
    """Writes what the frontiers say. `partitions` is the pump's own, and grows; `wake` is set whenever a frontier may
    have moved; `moved` is called when a new checkpoint is durable. Commits begin at least `every` seconds apart, and
    `of_each` for each partition of the last one."""

    def __init__(
        self,
        source: StreamSource,
        epoch: Epoch,
        partitions: Mapping[str, Partition],
        clock: Clock,
        wake: asyncio.Event,
        moved: Callable[[], None],
    ) -> None:
        self._trimmed = source if isinstance(source, Trimmed) else None
        self._together = source if isinstance(source, TrimmedTogether) else None
        self.every = COMMIT_EVERY
        self.of_each = 0.0
        self._epoch = epoch
        self._partitions = partitions
        self._clock = clock
        self._wake = wake
        self._moved = moved
        self._trimmed_at = 0.0
        self._passed = False  # whether the last commit passed anything
        self._told: dict[str, int] = {}  # what the source has heard of each partition
        self._opened = False  # again, so that it may have forgotten all that

    async def run(self) -> None:
        """Commits and trims whenever there is something new, at most each `every` seconds."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._quiet_for()):
                    await self._wake.wait()
            self._wake.clear()
            began = self._clock.monotonic()
            many = await self.commit()
            apart = max(self.every, self.of_each * many, 0.0 if self._passed or not many else HELD_UP_EVERY)
            await self._trim(asked=many > 0)
            await asyncio.sleep(max(0.0, apart - (self._clock.monotonic() - began)))

    def _quiet_for(self) -> float | None:
        """Seconds after which the source is told what it has not heard, also when nothing moves any more."""
        if self._trimmed is None or not (self._opened or self._untold()):
            return None
        return max(0.0, self._trimmed_at + TRIM_EVERY - self._clock.monotonic())

    def _untold(self) -> dict[str, int]:
        """The checkpoints of which the source has not heard."""
        parts = self._partitions.items()
        return {name: part.checkpoint for name, part in parts if part.checkpoint > self._told.get(name, 0)}

    async def commit(self) -> int:
        """Makes durable what the frontiers say now; of how many partitions that was news. Raises StaleFence when
        another owner took the source."""
        marks = {name: mark for name, part in self._partitions.items() if (mark := part.mark()) is not None}
        if not marks:
            return 0
        await self._epoch.commit(marks)
        before = {name: self._partitions[name].checkpoint for name in marks}
        for name, mark in marks.items():
            self._partitions[name].committed(mark)
        self._passed = any(self._partitions[name].checkpoint > position for name, position in before.items())
        self._moved()
        return len(marks)

    async def _trim(self, *, asked: bool) -> None:
        now = self._clock.monotonic()
        if self._trimmed is not None and now >= self._trimmed_at + TRIM_EVERY:
            self._trimmed_at = now
            await self.tell(asked=asked)

    async def opening(self, opened: Awaitable[None]) -> None:
        """The source is opened, perhaps again: then it hears the checkpoint anew, of an owner that is one still."""
        self._opened = bool(self._told)
        await opened
        self._opened = bool(self._told)  # also what it was told meanwhile
        self._wake.set()

    async def finish(self) -> None:
        """The last commit, of which the source hears too."""
        await self.tell(asked=await self.commit() > 0)

    async def tell(self, *, asked: bool = False) -> None:
        """Tells the source what its checkpoint has passed, if it wants to know: what it forgets is gone, so the store
        is asked just before whether this owner is one still, unless it said so just now (`asked`). Raises StaleFence
        when another one took the source, or the store was put back from a copy and knows of an earlier checkpoint."""
        if self._trimmed is None:
            return
        if self._opened or (not asked and self._untold()):
            await self._epoch.renew()
        if self._opened:
            self._opened = False
            self._told.clear()
        untold = self._untold()
        if self._together is None:
            await asyncio.gather(*(self._tell(self._trimmed, name, position) for name, position in untold.items()))
        elif untold:
            with contextlib.suppress(Unavailable):
                await self._together.settled_below_each(untold)
                self._told.update(untold)

    async def _tell(self, source: Trimmed, name: str, position: int) -> None:
        with contextlib.suppress(Unavailable):
            await source.settled_below(name, position)
            self._told[name] = position
