"""Deadlines of held items, before which they must start: which are over now, and when the next one will be.

An item that was lost may still run somewhere until its lease is over. It started in time, so its deadline counts only
from then on: the item is not over while it may run.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable


class Deadlines:
    """Deadlines of the held positions of one partition.

    Invariants: `_at` has every such position with its time, and `_deferred` those whose item may run; `_heap` has an
    entry for each of `_at`, and at most as many more that count no longer.
    """

    __slots__ = ("_at", "_deferred", "_heap")

    def __init__(self) -> None:
        self._at: dict[int, float] = {}
        self._deferred: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._at)

    def keep(self, position: int, at: float) -> None:
        """Notes that a held position expires at this wall clock second."""
        if self._at.get(position) != at:
            self._at[position] = at
            heapq.heappush(self._heap, (at, position))
            self._prune()

    def defer(self, position: int, at: float) -> None:
        """Notes the same of a held position whose item may still run: that counts once it is `resumed`."""
        self._deferred[position] = at

    def resumed(self, positions: Iterable[int]) -> None:
        """Has the deadlines of these positions count, whose items run no longer."""
        for position in positions:
            if (at := self._deferred.pop(position, None)) is not None:
                self.keep(position, at)

    def forget(self, positions: Iterable[int]) -> None:
        """Forgets positions that are held no longer."""
        for position in positions:
            self._at.pop(position, None)
        self._prune()

    def over(self, now: float, most: int) -> list[int]:
        """Forgets and returns positions whose time has come, `most` at most, in the order of their times."""
        over: list[int] = []
        while len(over) < most and self._heap and self._heap[0][0] <= now:
            at, position = heapq.heappop(self._heap)
            if self._at.get(position) == at:
                del self._at[position]
                over.append(position)
        return over

    @property
    def next_time(self) -> float | None:
        """The next time (wall clock seconds) at which a deadline is over; None: none will be."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _prune(self) -> None:
        if len(self._heap) > 2 * len(self._at) + 16:
            self._heap = [(at, position) for position, at in self._at.items()]
            heapq.heapify(self._heap)
