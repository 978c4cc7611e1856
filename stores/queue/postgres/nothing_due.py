"""Looks that can be skipped on PostgreSQL: after a look found nothing due, only items that this process stored since
can be due, as far as it knows. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ....model.demand import Cell, Closed

#: Most items that are remembered; with more a look is cheaper.
MOST = 1000


class Scope(NamedTuple):
    """The scope of a look: all lanes of these cells but the closed ones."""

    cells: frozenset[Cell]
    closed: frozenset[Closed]


class NothingDue:
    """The result of the last look. Times are monotonic seconds. Invariant: before `_until`, as far as this process
    knows, nothing is due in `_scope` except the items in `_fresh` (id → lane)."""

    def __init__(self) -> None:
        self._scope = Scope(frozenset(), frozenset())
        self._until = -math.inf
        self._fresh: dict[int, int] = {}
        self._early: set[int] = set()  # claimed by one answer before another one said that they were stored

    def looking(self) -> None:
        """Begins a look, which sees all items stored before."""
        self._fresh.clear()
        self._early.clear()
        self.forget()

    def found(self, scope: Scope, until: float) -> None:
        """Notes that a claim found nothing due, and that nothing will be due before `until`."""
        self._scope, self._until = scope, until

    def forget(self) -> None:
        """Makes a look necessary: anything may be due."""
        self._until = -math.inf

    def put(self, lanes: Mapping[int, int]) -> None:
        """Notes items that were stored and are due (id → lane)."""
        for number, lane in lanes.items():
            if number in self._early:
                self._early.remove(number)
            else:
                self._fresh[number] = lane
        if len(self._fresh) > MOST:
            self.looking()

    def claimed(self, ids: Iterable[int]) -> None:
        """Forgets items that were leased."""
        for each in ids:
            if self._fresh.pop(each, None) is None:
                self._early.add(each)
        if len(self._early) > MOST:
            self.looking()

    def fresh(self, scope: Scope, lanes: Collection[int], now: float) -> list[int]:
        """The only lanes among these that have due items; empty if that is not known, or if there are none. `lanes` are
        in the scope."""
        if now >= self._until or self._scope.closed != scope.closed or not self._scope.cells >= scope.cells:
            return []
        wanted = frozenset(self._fresh.values())
        return [lane for lane in lanes if lane in wanted]

    def left(self, now: float) -> float:
        """Seconds for which nothing more is due; 0: not known."""
        return 0.0 if self._fresh else max(0.0, self._until - now)
