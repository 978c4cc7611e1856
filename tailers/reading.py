"""Bounds on how far a stream pump reads ahead: its window, the positions it may span, and what may be run at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Protocol

from ..sdk.model.demand import Cell
from ..sdk.model.errors import TailraceError
from ..sdk.model.lease import LeaseSizes
from ..sdk.model.workload import FLIGHT_ITEMS
from ..sdk.source import Counted, StreamSource
from .mapping.target import Target
from .partition import Partition
from .rules.clog import may_read
from .rules.window import FULL, Room, Window
from .session import SchedulerSession


class Measured(Protocol):
    """The pump that reads: its lag is -1 until it is known."""

    source: StreamSource
    lag: int

    @property
    def sizes(self) -> LeaseSizes: ...


class Reading:
    """Room for the next read of one pump. `partitions` is the pump's own, and grows. A tailer all of whose items are of
    one cell reads nothing that this cell could not take."""

    def __init__(
        self, target: Target, session: SchedulerSession, window: Window, partitions: Mapping[str, Partition]
    ) -> None:
        self._target = target
        self._session = session
        self._window = window
        self._partitions = partitions

    def room(self, held: int) -> Room:
        """How much may be read now, with so many items held."""
        credit = self._session.credit
        room = self._window.room(self.span())
        most = credit.total_room
        kind = self._target.only_kind
        if kind is not None:
            if kind.function in credit.clogs and not may_read(held):
                return FULL
            most = 0 if credit.is_closed(kind) else min(most, credit.batch_room(Cell(kind.function, kind.priority)))
        items = min(room.items, most, FLIGHT_ITEMS)
        return Room(items, room.bytes) if items else FULL

    @property
    def most(self) -> int:
        """How many items may be read now, all partitions together, where each has a window of its own."""
        return min(self._session.credit.total_room, FLIGHT_ITEMS)

    def room_of(self, part: Partition) -> Room:
        """How much memory there is for a partition that has a window of its own."""
        return part.window.room(_span(part))

    def span(self) -> int:
        """How many positions lie between the frontiers and what was read."""
        return sum(map(_span, self._partitions.values()))

    async def measure(self, pump: Measured, ends_at: Callable[[Mapping[str, int]], None]) -> None:
        """Measures how far behind the source's end the tailer is, for ever; tells where each partition ends."""
        while True:
            await asyncio.sleep(pump.sizes.heartbeat)
            with contextlib.suppress(TailraceError):
                pump.lag = await self._lag(pump.source, ends_at)

    async def _lag(self, source: StreamSource, ends_at: Callable[[Mapping[str, int]], None]) -> int:
        """How many positions lie between the frontiers and the ends of the source; items, where it counts them."""
        positions = {name: part.frontier.position for name, part in self._partitions.items()}
        if isinstance(source, Counted):
            return await source.behind(positions)
        ends = await source.ends()
        ends_at(ends)
        return sum(max(0, end - positions.get(name, 0)) for name, end in ends.items())


def _span(part: Partition) -> int:
    span = part.frontier.span
    if span < FLIGHT_ITEMS:
        return span
    part.frontier.advance()
    return part.frontier.span
