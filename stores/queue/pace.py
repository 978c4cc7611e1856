"""The pace of pollers: THE rule of when one of them looks next.

All pollers of a queue together look once per `interval`: each one every N intervals if there are N pollers, give or
take a tenth. So 1, 10 and 100 pollers cost the store the same, and none always follows another (the "database as a
queue" of DoorDash's and Dropbox's designs). After an event that all of them notice at the same moment (a hint, a time
that has come, a store that is back) they look one after the other, GAP apart on average. A store that answers more
slowly than usual is asked less often until it has recovered, as TCP Vegas lowers its rate before anything is lost. The
usual time is kept apart for looks that claim something and looks that do not: a claim waits for the disk, and is slow
only compared with other claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...model.demand import Cell, Closed, Demand

#: Mean seconds between two pollers that follow the same event.
GAP = 0.01
#: Share of its interval by which a poller's next look is earlier or later.
JITTER = 0.1
#: An answer is slow if it takes SLOW times the usual time; the pause after it is at most LONGEST times as long as it.
SLOW, LONGEST = 4.0, 4.0
#: The longest pause, seconds.
MOST = 10.0
#: Answers quicker than QUICK seconds count as QUICK. Each ITEMS items more may take as long again.
QUICK, ITEMS = 0.005, 50
#: The usual time falls by FALLS of the way to a quicker answer, and rises by at most a factor RISES after a slower one.
FALLS, RISES = 0.5, 1.02


class PollPace:
    """The pace of one poller. `interval`: seconds between looks of all pollers together. `pollers`: their number, this
    one included, which the caller keeps up to date. `random` gives numbers from 0 to 1."""

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
        """Seconds until this poller looks after an event that all pollers notice; 0 when it is the only one."""
        return GAP * (self.pollers - 1) * self._random()

    def answered(self, took: float, items: int = 0) -> float:
        """Seconds for which to leave the store alone after an answer with so many items that took so long."""
        weight = 1.0 + items / ITEMS
        took = max(took / weight, QUICK)
        which = items > 0
        usual = self._usual[which] or took
        pause = took * min(LONGEST, max(0.0, took / (SLOW * usual) - 1.0))
        self._usual[which] = min(took, usual * RISES) if took > usual else usual + (took - usual) * FALLS
        return min(pause * weight, MOST)


class EmptyLooks:
    """Cells in which the last look found nothing, and the time before which it need not be repeated. Times are
    monotonic seconds.

    Invariants: a cell is in `_until` only while, as far as this process knows, nothing can be due in it before that
    time; `_next` is the answer of `next` for `_asked`, if it is not None.
    """

    def __init__(self) -> None:
        self._until: dict[Cell, float] = {}
        self._closed: frozenset[Closed] = frozenset()
        self._asked: list[Cell] = []
        self._next: float | None = None

    def nothing(self, demand: Demand, until: float) -> None:
        """Notes that a look for this demand found nothing, and need not be repeated until then."""
        self._next = None
        if demand.closed != self._closed:
            self._until, self._closed = {}, demand.closed
        for cell in demand.cells:
            self._until[cell] = until

    def changed(self) -> None:
        """Forgets all: anything may be due now, so the next look is made at once."""
        self._next = None
        self._until.clear()

    def event(self, at: float) -> None:
        """Notes that the next look is to be made at this time, if not before."""
        self._next = None
        self._until = {cell: min(until, at) for cell, until in self._until.items()}

    def next(self, demand: Demand) -> float:
        """Time of the next look for a demand; a time in the past means at once."""
        if demand.closed != self._closed:
            return -math.inf
        # A waiting lease asks again after each item, mostly for the same cells; there may be hundreds of them. Lists of
        # identical objects compare by identity, without a look into each cell.
        asked = [*demand.cells]
        if self._next is None or asked != self._asked:
            self._asked = asked
            self._next = min((self._until.get(cell, -math.inf) for cell in asked), default=-math.inf)
        return self._next
