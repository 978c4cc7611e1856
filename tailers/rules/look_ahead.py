"""Turns of the items that wait in a bounded part of a stream, urgent ones first; and whether to read on.

Items without credit wait by position (held.py) while the stream is read on; when there is credit again, the most urgent
levels go first, cells of one level in equal parts, and the lowest level that waits has a small share, so that it never
starves. The frontier has no part in this: it stays behind the oldest item that is not over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...model.demand import Cell

#: Share of the lowest level that waits in the items that go, when not all may; the scheduler's is the same.
LOW_SHARE = 0.05
#: Items that the lowest level may be owed at most: a share is a pace, not a debt to be collected at once.
MOST_OWED = 16.0

Room = Callable[[Cell], int]


class LookAhead:
    """Turns of the items that wait, and the bound on reading ahead of them. `most`: so many may wait for their turn
    while the stream is read on; 0: as many as may be held.

    Invariant: `_owed`, the items that the lowest level that waits is owed, is at least 0 and at most MOST_OWED.
    """

    __slots__ = ("_owed", "most")

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self._owed = 0.0

    def room(self, waiting: int) -> int | None:
        """Number of items that may be read while `waiting` of them wait for their turn; None: this is no bound. 0 while
        less than a sixteenth is free: a few items do not pay for a read."""
        if not self.most:
            return None
        left = self.most - waiting
        return left if left > self.most >> 4 or (left > 0 and not waiting) else 0

    def turns(self, waiting: Mapping[Cell, int], room: Room, total: int) -> dict[Cell, int]:
        """Number of items of each cell that go now, most urgent first, when `total` may go together. The caller takes
        all of them."""
        turns, self._owed = _turns(waiting, room, total, self._owed)
        return turns

    def left_for(self, new: Mapping[Cell, int], waiting: Mapping[Cell, int], room: Room, total: int) -> dict[Cell, int]:
        """Number of items of each cell of `new` that may go before the `waiting` ones had their turn: none in whose
        place an item could go that waits in the same cell or is more urgent."""
        both = {cell: new.get(cell, 0) + waiting.get(cell, 0) for cell in [*waiting, *new]}
        turns, _ = _turns(both, room, total, self._owed)
        return {cell: max(0, turns.get(cell, 0) - waiting.get(cell, 0)) for cell in new}


def _turns(waiting: Mapping[Cell, int], room: Room, total: int, owed: float) -> tuple[dict[Cell, int], float]:
    able = {cell: min(count, room(cell)) for cell, count in waiting.items()}
    levels: dict[int, dict[Cell, int]] = {}
    for cell in sorted(able, key=_urgency):
        if able[cell] > 0:
            levels.setdefault(cell.priority, {})[cell] = able[cell]
    total = max(0, min(total, sum(count for cells in levels.values() for count in cells.values())))
    if len(levels) < 2:
        return (_in_parts(next(iter(levels.values())), total) if levels else {}), 0.0
    lowest = levels.popitem()[1]
    owed = min(MOST_OWED, owed + total * LOW_SHARE)
    low = min(int(owed), sum(lowest.values()))
    left = total - low
    turns: dict[Cell, int] = {}
    for cells in levels.values():
        given = _in_parts(cells, left)
        left -= sum(given.values())
        turns |= given
    turns |= _in_parts(lowest, low + left)
    return turns, 0.0 if left else owed - low


def _urgency(cell: Cell) -> tuple[int, str]:
    return cell.priority, cell.function


def _in_parts(able: Mapping[Cell, int], count: int) -> dict[Cell, int]:
    """Divides `count` among cells as evenly as they are able to take it; leaves out cells that get none."""
    given: dict[Cell, int] = {}
    left = len(able)
    for cell in sorted(able, key=able.__getitem__):
        given[cell] = min(able[cell], -(-count // left))
        count -= given[cell]
        left -= 1
    return {cell: given[cell] for cell in able if given[cell]}
