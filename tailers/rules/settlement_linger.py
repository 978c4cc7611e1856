"""Group commit of plain successes: THE rule of how long they gather before they are written together.

A settlement of one costs a store nearly what one of fifty does, a commit with its sync of the disk, and at two hundred
items a second each of them stands before the submission that comes next. So where an item ends soon after a write
began, the next write waits for more, as commits gather in a log writer (group commit; PostgreSQL's commit_delay). A
lone item is written at once, and so is an item that somebody waits for.
"""

from __future__ import annotations

import math

from ...model.linger import Linger

#: From the beginning of a write to that of the next one, …
GATHER = Linger(0.02)
#: … where the next item ended within so many seconds of it: a caller that submits one at a time and waits for its end
#: is slower than that, and not made slower.
SOON = 0.01
#: Items that are a batch worth its write; and the part of a window that gathers at most, as a divisor.
ENOUGH, PART = 64, 8


class Gathering:
    """Items of one tailer that wait to be written. `window`: how many it has room for. Times are monotonic seconds.

    Invariant: an `awaited` item, or ENOUGH of them, wait for nothing.
    """

    def __init__(self, window: int) -> None:
        self._enough = min(ENOUGH, window // PART)
        self._items = 0
        self._hurry = False
        self._began = -math.inf

    def add(self, items: int, now: float, *, awaited: bool) -> bool:
        """Notes that so many more wait. True when all are to be written at once."""
        alone = not self._items and not 0 <= now - self._began < SOON
        self._items += items
        self._hurry = self._hurry or alone or awaited or self._items >= self._enough
        return self._hurry

    def rest(self, now: float) -> float:
        """Seconds for which more may come before the write; 0: none."""
        return 0.0 if self._hurry else GATHER.rest(self._began, now)

    def written(self, now: float) -> None:
        """Notes that all items that waited are being written."""
        self._items = 0
        self._hurry = False
        self._began = now
