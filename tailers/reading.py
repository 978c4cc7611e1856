"""Bounds on how far a stream pump reads ahead: its window, the positions it may span, and the credit of its cells."""

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
    """Room for the next read of one pump. `partitions` is the core's own, and grows. A tailer whose items are all of
    one cell reads no more than that cell could take."""

    def __init__(self, target: Target, seen: Surroundings, window: Window, partitions: Mapping[str, Partition]) -> None:
        self._target = target
        self._seen = seen
        self._window = window
        self._partitions = partitions

    def room(self, held: int) -> ReadRoom:
        """The room for the next read, while `held` items are held."""
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
        """Number of items that may be read now of all partitions together, where each has a window of its own."""
        return min(self._seen.credit.total_room, FLIGHT_ITEMS)

    def room_of(self, part: Partition) -> ReadRoom:
        """The room of a partition that has a window of its own."""
        return part.window.room(_span(part))

    def span(self) -> int:
        """Number of positions from the frontiers to the ends of what was read."""
        return sum(map(_span, self._partitions.values()))


def _span(part: Partition) -> int:
    span = part.frontier.span
    if span < FLIGHT_ITEMS:
        return span
    part.frontier.advance()
    return part.frontier.span
