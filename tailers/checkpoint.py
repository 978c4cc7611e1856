"""The checkpoint of a stream tailer, written behind the frontiers of its partitions; and the stream trimmed behind it,
where the source forgets what its checkpoint has passed."""

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

#: From the beginning of a checkpoint write that moved nothing to that of the next one.
HELD_UP_EVERY = Linger(0.1)
#: A stream behind the checkpoint is trimmed at most this often, seconds.
TRIM_EVERY = 1.0


class Checkpoint:
    """Writes what the frontiers say. `partitions` is the core's own, and grows; `wake` is set whenever a frontier may
    have moved; `moved` is called when a new checkpoint is durable. Commits begin at least `every` apart, and
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
        self._passed = False  # whether the last commit passed anything

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
        """Makes durable what the frontiers say now; of how many partitions that was news. Raises StaleFence when
        another owner took the source."""
        marks = {name: mark for name, part in self._partitions.items() if (mark := part.mark()) is not None}
        if not marks:
            return 0
        await self._epoch.commit(marks)
        passed = [self._partitions[name].committed(mark) for name, mark in marks.items()]
        self._passed = any(passed)
        self._moved()
        return len(marks)

    async def opening(self, opened: Awaitable[None]) -> None:
        """The source is opened, perhaps again: then it hears the checkpoint anew, of an owner that is one still."""
        self._trimming.reopened()
        await opened
        self._trimming.reopened()  # also what it was told meanwhile
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
