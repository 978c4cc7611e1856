"""The source of a replay: reads the positions that were chosen when it began, no faster than its rate."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...foundation.clock import Clock
from ...model.errors import PositionsGone
from ...model.replay import Replay
from ...sdk.source import Ranged, Rereader, StreamBatch
from ..partition import LARGE_HOLE
from ..rules.pace import Pace
from ..rules.replay import Course

#: The assumed size of an item before any was seen, bytes: so the first read of large items stays small.
USUAL_BYTES = 16 << 10
#: Seconds of a wait for the pace at least: an event loop tells no less apart.
SHORTEST_WAIT = 0.001


class ReplaySource:
    """Implements `sdk.source.StreamSource` over a reader of the live tailer's source; the reader is never opened, so it
    does not disturb the live tailer.

    handed  number of batches read so far

    Invariant: positions are handed out once between two `open`s, rising within a partition, and none but the chosen.
    """

    def __init__(self, reader: Rereader, replay: Replay, clock: Clock) -> None:
        # Positions between the chosen ones are passed without a note, as holes are.
        self.capabilities = replace(reader.capabilities, holes=True)
        self._reader = reader
        self._replay = replay
        self._clock = clock
        self._pace = Pace(replay.rate, clock.monotonic())
        self.handed = 0
        self._courses: dict[str, Course] = {}
        self._size = float(USUAL_BYTES)
        self._turn = 0
        self._closed = asyncio.Event()
        self._closed.set()

    @property
    def over(self) -> bool:
        """Whether all chosen positions were read."""
        return not self._closed.is_set() and all(course.over for course in self._courses.values())

    def jump(self, ends: Mapping[str, int]) -> int:
        """The largest gap between the end of what was read of a partition and its next position."""
        jumps = (course.at - ends.get(name, 0) for name, course in self._courses.items() if not course.over)
        return max(jumps, default=0)

    async def open(self, positions: Mapping[str, int]) -> None:
        if not self._closed.is_set():
            return
        there = await self._reader.ends()
        wanted = [stretch for stretch in self._replay.stretches if stretch.spans]
        if gone := sorted({stretch.partition for stretch in wanted} - there.keys()):
            raise PositionsGone(
                f"{self._replay.name}: the source of {self._replay.tailer!r} has no partition {gone[0]!r} any more; "
                "was the file of that tailer changed? Put it back, or cancel this replay"
            )
        self._courses = {
            each.partition: Course(each.spans, positions.get(each.partition, each.first)) for each in wanted
        }
        self._closed.clear()

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        if self.over:
            await self._rest(timeout)
            return []
        if not await self._may_read(timeout):
            return []
        going = [name for name, course in self._courses.items() if not course.over]
        self._turn = (self._turn + 1) % len(going)
        name = going[self._turn]
        course = self._courses[name]
        most = min(max(1, int(max_bytes / self._size)), self._pace.ready(self._clock.monotonic(), limit))
        if isinstance(self._reader, Ranged) and self.capabilities.sparse:
            first, last = course.rest
            batch = await self._reader.between(name, first, last, most)
            through = batch.positions[-1] + 1 if batch.positions else last + 1
        else:
            positions = course.next(most, LARGE_HOLE)
            batch = await self._reader.reread(name, positions)
            through = positions[-1] + 1
            if self._reader.capabilities.holes:
                batch.absent = []
        if self._closed.is_set():
            return []
        batch.partition = name
        course.passed(through)
        self._pace.took(len(batch.positions))
        if batch.positions:
            size = sum(map(len, batch.payloads)) / len(batch.positions)
            self._size = max(1.0, size, (self._size + size) / 2)
        if not (batch.positions or batch.absent or batch.lost):
            return []
        self.handed += 1
        return [batch]

    async def _may_read(self, timeout: float) -> bool:
        """Waits until the pace allows a read; returns whether it does. A wait may end a little early, as those of
        uvloop do: then it goes on for the rest, no longer."""
        end = self._clock.monotonic() + timeout
        while not self._closed.is_set():
            now = self._clock.monotonic()
            if self._pace.ready(now, 1):
                return True
            if now >= end:
                return False
            await self._rest(min(end - now, max(SHORTEST_WAIT, self._pace.wait)))
        return False

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        batch = await self._reader.reread(partition, positions)
        batch.partition = partition
        return batch

    async def ends(self) -> dict[str, int]:
        """The position behind the last chosen one of each partition."""
        return {each.partition: each.spans[-1][1] + 1 for each in self._replay.stretches if each.spans}

    async def close(self) -> None:
        self._closed.set()
        await self._reader.close()
