"""Bounds on how far a stream pump reads ahead: its window, the positions it may span, and what may be run at all."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.demand import Cell
from ..model.workload import FLIGHT_ITEMS
from .mapping.target import Target
from .partition import Partition
from .rules.clog import may_read
from .rules.window import FULL, ReadRoom, Window
from .surroundings import Surroundings


class Reading:
    """Room for the next read of one pump. `partitions` is the core's own, and grows. A tailer all of whose items are of
    one cell reads nothing that this cell could not take."""

    def __init__(self, target: Target, seen: Surroundings, window: Window, partitions: Mapping[str, Partition]) -> None:
        self._target = target
        self._seen = seen
        self._window = window
        self._partitions = partitions

    def room(self, held: int) -> ReadRoom:
        """How much may be read now, with so many items held."""
        credit = self._seen.credit
        room = self._window.room(self.span())
        most = credit.total_room
        kind = self._target.only_kind
        if kind is not None:
            if kind.function in credit.clogs and not may_read(held):
                return FULL
            most = 0 if credit.is_closed(kind) else min(most, credit.batch_room(Cell(kind.function, kind.priority)))
        items = min(room.items, most, FLIGHT_ITEMS)
        return ReadRoom(items, room.bytes) if items else FULL

    @property
    def most(self) -> int:
        """How many items may be read now, all partitions together, where each has a window of its own."""
        return min(self._seen.credit.total_room, FLIGHT_ITEMS)

    def room_of(self, part: Partition) -> ReadRoom:
        """How much memory there is for a partition that has a window of its own."""
        return part.window.room(_span(part))

    def span(self) -> int:
        """How many positions lie between the frontiers and what was read."""
        return sum(map(_span, self._partitions.values()))


def _span(part: Partition) -> int:
    span = part.frontier.span
    if span < FLIGHT_ITEMS:
        return span
    part.frontier.advance()
    return part.frontier.span
