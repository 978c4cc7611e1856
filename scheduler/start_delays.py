"""Start delays: from when items were due until a worker is sent them, and how long they waited here, by how that ended.

Each item is counted while there are few; of many, one assignment in sixteen stands for all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ..model.due_times import value_for
from ..model.metrics import START_DELAY, WAIT, Sample, of_histograms
from ..model.outcome import Outcome
from ..model.priority import Priority
from ..model.workload import INDEX_BITS, INDEX_MASK, Ended, Flight, Kind
from .rules.explain import Reason
from .rules.flow import KIND, REF, SESSION, Item
from .sessions import TailerSession

#: Items of a second of which each is counted; of those after them one assignment in so many.
EXACT, ONE_IN = 2000, 16
#: Flights that have ended and may be remembered.
SPARE = 1024
_REASONS = frozenset(Reason)
_LEVELS = {int(priority): priority.label for priority in Priority}


class Arrival(NamedTuple):
    """A flight that was pushed: when, what some of its items had waited by then (`due_times.py`), and their kinds."""

    at: float
    waited: Sequence[float]
    kinds: Sequence[Kind]


class StartDelays:
    """Start delays that one scheduler measured. Times are monotonic seconds.

    Invariants: every flight that a session holds is remembered, and at most as many that have ended and `SPARE`; what
    is counted of many items is as many as they are, but for less than `ONE_IN` assignments.
    """

    def __init__(self) -> None:
        self.starts = START_DELAY.histograms()
        self.waits = WAIT.histograms()
        self._arrivals: dict[tuple[TailerSession, int], Arrival] = {}
        self._most = SPARE
        self._second = 0
        self._exact = EXACT
        self._passed = self._skipped = 0  # items that were not counted since one was, and their assignments

    def pushed(self, tailer: TailerSession, flight: Flight, now: float) -> None:
        """Notes a flight that came from this session."""
        self._arrivals[tailer, flight.number] = Arrival(now, flight.waited, flight.kinds)
        if len(self._arrivals) > self._most:
            self._forget()

    def _forget(self) -> None:
        """Forgets ended flights. So seldom that it costs a flight as much as a look-up."""
        self._arrivals = {of: arrival for of, arrival in self._arrivals.items() if of[1] in of[0].held.flights}
        self._most = 2 * len(self._arrivals) + SPARE

    def assigned(self, items: Sequence[Item], now: float) -> None:
        """Counts items, all of one session, that are sent to a worker."""
        size, second = len(items), int(now)
        if second != self._second:
            self._second, self._exact = second, EXACT
        if self._exact > 0:
            self._exact -= size
            self._count(items, 1, now)
            return
        self._passed += size
        self._skipped += 1
        if self._skipped >= ONE_IN:
            each, self._passed = divmod(self._passed, size)
            self._skipped = 0
            self._count(items, each, now)

    def _count(self, items: Sequence[Item], each: int, now: float) -> None:
        """Counts items; each stands for so many."""
        tailer: TailerSession = items[0][SESSION]
        for number, group in groupby(items, lambda item: item[REF] >> INDEX_BITS):
            arrival = self._arrivals.get((tailer, number))
            if arrival is None:  # of a session that was adopted
                continue
            here, size, waited = max(0.0, now - arrival.at), len(arrival.kinds), arrival.waited
            for kind, mine in _by_kind(list(group)):
                level = _LEVELS.get(kind.priority, str(kind.priority))
                self.waits.record((level, "started"), here, each * len(mine))
                if waited:
                    before = [value_for(waited, item[REF] & INDEX_MASK, size) for item in mine]
                    known = [one + here for one in before if one >= 0]
                    self.starts.record_all((kind.function, level), known, each)

    def ended(self, tailer: TailerSession, ends: Mapping[int, Ended], now: float) -> None:
        """Counts how long items that are handed back to this session waited here, by reason."""
        for ref, end in ends.items():
            if end.outcome != Outcome.HELD or (arrival := self._arrivals.get((tailer, ref >> INDEX_BITS))) is None:
                continue
            code = end.reason.partition(":")[0]
            reason = code if code in _REASONS else "handed_back"
            kind = arrival.kinds[ref & INDEX_MASK]
            self.waits.record((_LEVELS.get(kind.priority, str(kind.priority)), reason), max(0.0, now - arrival.at))

    def rows(self) -> list[tuple[str, str, list[int]]]:
        """Start delays by function and level, as a gateway is told them."""
        return [(function, level, counts) for (function, level), counts in self.starts.rows()]

    def samples(self) -> list[Sample]:
        """Samples of all start delays."""
        return [*of_histograms(START_DELAY, self.starts), *of_histograms(WAIT, self.waits)]


def _by_kind(items: Sequence[Item]) -> Collection[tuple[Kind, Sequence[Item]]]:
    """The items of each kind. Mostly all are of one, which all of them share."""
    first = items[0][KIND]
    if all(item[KIND] is first for item in items):
        return [(first, items)]
    found: dict[Kind, list[Item]] = {}
    for item in items:
        found.setdefault(item[KIND], []).append(item)
    return found.items()
