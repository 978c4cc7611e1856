"""The pace of pollers: THE rule of when one of them looks next.

All pollers of a queue together look once in `interval`: each in as many intervals as there are pollers, give or take a
tenth, so that 1, 10 and 100 of them cost the store the same and none follows another for long (the "database as a
queue" of DoorDash's and Dropbox's designs). What all of them learn in the same moment (a hint, a time that
has come, a store that is back) they follow one after the other, GAP apart on the average. And a store that answers
slower than it is used to is asked less often until it has recovered, as TCP Vegas takes back its rate before
anything is lost. What it is used to differs by whether a look claimed anything: a claim waits for the disk, and is slow
only beside other claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...model.demand import Cell, Closed, Demand

#: Seconds: between two pollers that follow the same event.
GAP = 0.01
#: Part of its interval by which a poller's next look is earlier or later.
JITTER = 0.1
#: Answers that take so many times what is usual are slow; the pause after one is at most so many times as long as it.
SLOW, LONGEST = 4.0, 4.0
#: Seconds: the longest pause.
MOST = 10.0
#: Seconds: answers quicker than that are not told apart. So many items more may take as long again.
QUICK, ITEMS = 0.005, 50
#: What is usual falls by so much of the way to a quicker answer, and rises so many times towards a slower one.
FALLS, RISES = 0.5, 1.02


class PollPace:
    """The pace of one poller. `interval` seconds between looks of all pollers together; `pollers`, this one among them,
    is for whoever counts them to set; `random` gives numbers from 0 to 1."""

    def __init__(self, interval: float, random: Callable[[], float]) -> None:
        self._interval = interval
        self._random = random
        self._usual = [0.0, 0.0]  # of looks that found nothing, and of claims
        self.pollers = 1

    @property
    def own(self) -> float:
        """Seconds between looks of this poller."""
        return self._interval * self.pollers

    def poll(self) -> float:
        """Seconds until this poller looks again by itself."""
        return self.own * (1.0 + JITTER * (2.0 * self._random() - 1.0))

    def after_event(self) -> float:
        """Seconds until this poller looks because of what the others see too; 0 when it is the only one."""
        return GAP * (self.pollers - 1) * self._random()

    def answered(self, took: float, items: int = 0) -> float:
        """Seconds to leave the store alone after an answer of so many items that took so long."""
        weight = 1.0 + items / ITEMS
        took = max(took / weight, QUICK)
        which = items > 0
        usual = self._usual[which] or took
        pause = took * min(LONGEST, max(0.0, took / (SLOW * usual) - 1.0))
        self._usual[which] = min(took, usual * RISES) if took > usual else usual + (took - usual) * FALLS
        return min(pause * weight, MOST)


class EmptyLooks:
    """Cells in which the last look saw nothing, and until when it need not be repeated. Times are monotonic seconds.

    Invariants: a cell stands in `_until` only while nothing that this process knows of can be due in it before then;
    `_next` is what `next` answers for `_asked`, where it is not None.
    """

    def __init__(self) -> None:
        self._until: dict[Cell, float] = {}
        self._closed: frozenset[Closed] = frozenset()
        self._asked: list[Cell] = []
        self._next: float | None = None

    def nothing(self, demand: Demand, until: float) -> None:
        """A look for this demand found nothing."""
        self._next = None
        if demand.closed != self._closed:
            self._until, self._closed = {}, demand.closed
        for cell in demand.cells:
            self._until[cell] = until

    def changed(self) -> None:
        """Anything may be due: the next look is made at once."""
        self._next = None
        self._until.clear()

    def event(self, at: float) -> None:
        """The next look is made then, if not before."""
        self._next = None
        self._until = {cell: min(until, at) for cell, until in self._until.items()}

    def next(self, demand: Demand) -> float:
        """When to look for a demand; a time that is past: at once."""
        if demand.closed != self._closed:
            return -math.inf
        # Who waits asks again after each item, mostly for the cells of the last time, and there may be hundreds: lists
        # of the same objects compare without a look at what they hold.
        asked = [*demand.cells]
        if self._next is None or asked != self._asked:
            self._asked = asked
            self._next = min((self._until.get(cell, -math.inf) for cell in asked), default=-math.inf)
        return self._next
