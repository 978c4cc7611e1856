"""The checkpoint of a stream tailer, written behind the frontiers of its partitions; and the trimming of a source that
forgets records which the checkpoint has passed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from ..foundation.clock import Clock
from ..model.errors import Unavailable
from ..model.linger import Linger
from ..sdk.source import StreamSource, Trimmed, TrimmedTogether
from .partition import Partition
from .rules.trimming import Trimming, apart
from .stream_policy import COMMIT_EVERY
from .takeover.epoch import Epoch

#: The time from the beginning of a checkpoint write that moved nothing to the beginning of the next one.
HELD_UP_EVERY = Linger(0.1)
#: A stream behind the checkpoint is trimmed at most this often, seconds.
TRIM_EVERY = 1.0


class Checkpoint:
    """Writes the frontiers as checkpoints. `partitions` is the core's own, and grows; `wake` is set whenever a frontier
    may have moved; `moved` is called when a new checkpoint is durable. Commits begin at least `every` apart, and
    `of_each` seconds for each partition of the last one."""

    def __init__(
        self,
        source: StreamSource,
        epoch: Epoch,
        partitions: Mapping[str, Partition],
        clock: Clock,
        wake: asyncio.Event,
        moved: Callable[[], None],
        every: Linger = COMMIT_EVERY,
        of_each: float = 0.0,
    ) -> None:
        self._trimmed = source if isinstance(source, Trimmed) else None
        self._together = source if isinstance(source, TrimmedTogether) else None
        self._trimming = Trimming(TRIM_EVERY)
        self._every = every
        self._of_each = of_each
        self._epoch = epoch
        self._partitions = partitions
        self._clock = clock
        self._wake = wake
        self._moved = moved
        self._passed = False  # whether the last commit moved a checkpoint

    async def run(self) -> None:
        """Commits and trims whenever there is something new."""
        while True:
            quiet = None if self._trimmed is None else self._trimming.wait(self._clock.monotonic(), self._positions)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(quiet):
                    await self._wake.wait()
            self._wake.clear()
            began = self._clock.monotonic()
            many = await self.commit()
            linger = apart(self._every, self._of_each, HELD_UP_EVERY, many, passed=self._passed)
            if self._trimmed is not None and self._trimming.is_time(self._clock.monotonic()):
                await self.tell(asked=many > 0)
            await asyncio.sleep(linger.rest(began, self._clock.monotonic()))

    @property
    def _positions(self) -> dict[str, int]:
        return {name: part.checkpoint for name, part in self._partitions.items()}

    async def commit(self) -> int:
        """Writes the frontiers as they are now; returns the number of partitions whose checkpoint changed. Raises
        StaleFence when another owner took the source."""
        marks = {name: mark for name, part in self._partitions.items() if (mark := part.mark()) is not None}
        if not marks:
            return 0
        await self._epoch.commit(marks)
        passed = [self._partitions[name].committed(mark) for name, mark in marks.items()]
        self._passed = any(passed)
        self._moved()
        return len(marks)

    async def opening(self, opened: Awaitable[None]) -> None:
        """Waits until the source is opened, perhaps again. It is told the checkpoint anew then, once this owner is
        known to be the owner still."""
        self._trimming.reopened()
        await opened
        self._trimming.reopened()  # forgets also what the source was told meanwhile
        self._wake.set()

    async def finish(self) -> None:
        """Writes the last checkpoint, and tells the source of it."""
        await self.tell(asked=await self.commit() > 0)

    async def tell(self, *, asked: bool = False) -> None:
        """Tells a source that trims its stream how far the checkpoint is. Trimmed records are gone, so the store is
        asked just before whether this tailer still owns the source, unless it said so just now (`asked`). Raises
        StaleFence when another owner took the source, or when the store was put back and knows an earlier checkpoint
        only."""
        if self._trimmed is None:
            return
        if self._trimming.must_ask(self._positions, asked=asked):
            await self._epoch.renew()
        untold = self._trimming.to_tell(self._positions)
        if self._together is None:
            await asyncio.gather(*(self._tell(self._trimmed, name, position) for name, position in untold.items()))
        elif untold:
            with contextlib.suppress(Unavailable):
                await self._together.settled_below_each(untold)
                self._trimming.heard(untold)

    async def _tell(self, source: Trimmed, name: str, position: int) -> None:
        with contextlib.suppress(Unavailable):
            await source.settled_below(name, position)
            self._trimming.heard({name: position})
