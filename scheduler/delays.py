"""Start delays: from when items were due until a worker is sent them, and how long they waited here, by how that ended.

Counted for a whole assignment at once. Flights are remembered until all of each was sent or went back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from ..model.metrics import START_DELAY, WAIT, Sample, of_histograms
from ..model.outcome import Outcome
from ..model.priority import Priority
from ..model.workload import INDEX_BITS, INDEX_MASK, Ended, Flight, Kind
from .rules.explain import Reason
from .rules.lanes import KIND, REF, SESSION, Item

#: Flights that are remembered; the oldest is forgotten first.
FLIGHTS = 4096
_REASONS = frozenset(Reason)
_LEVELS = {int(priority): priority.label for priority in Priority}


class Delays:
    """Start delays that one scheduler measured. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.starts = START_DELAY.histograms()
        self.waits = WAIT.histograms()
        self._flights: OrderedDict[tuple[Any, int], tuple[float, Sequence[float], Sequence[Any]]] = OrderedDict()
        self._open: dict[tuple[Any, int], int] = {}

    def pushed(self, tailer: Any, flight: Flight, now: float) -> None:
        """A flight came from this session."""
        key = (tailer, flight.number)
        self._flights[key] = (now, flight.waited, flight.kinds)
        self._open[key] = len(flight)
        if len(self._flights) > FLIGHTS:
            self._forget(next(iter(self._flights)))

    def _forget(self, key: tuple[Any, int]) -> None:
        self._flights.pop(key, None)
        self._open.pop(key, None)

    def assigned(self, items: Sequence[Item], now: float) -> None:
        """Items, all of one session, are sent to a worker."""
        tailer = items[0][SESSION]
        for number, group in groupby(items, lambda item: item[REF] >> INDEX_BITS):
            some = list(group)
            found = self._flights.get((tailer, number))
            if found is None:
                continue
            pushed, waited, _ = found
            here = max(0.0, now - pushed)
            for kind, mine in _by_kind(some):
                level = _LEVELS.get(kind.priority, str(kind.priority))
                self.waits.record((level, "started"), here, len(mine))
                if waited:
                    before = [waited[item[REF] & INDEX_MASK] for item in mine]
                    self.starts.record_all((kind.function, level), [each + here for each in before if each >= 0])
            self._gone((tailer, number), len(some))

    def ended(self, tailer: Any, ends: Mapping[int, Ended], now: float) -> None:
        """Items go back to this session; of those that were held back the reason is counted."""
        for ref, end in ends.items():
            if end.outcome != Outcome.HELD or (found := self._flights.get((tailer, ref >> INDEX_BITS))) is None:
                continue
            code = end.reason.partition(":")[0]
            kind = found[2][ref & INDEX_MASK]
            reason = code if code in _REASONS else "handed_back"
            self.waits.record((_LEVELS.get(kind.priority, str(kind.priority)), reason), max(0.0, now - found[0]))
            self._gone((tailer, ref >> INDEX_BITS), 1)

    def _gone(self, key: tuple[Any, int], count: int) -> None:
        self._open[key] = left = self._open.get(key, 0) - count
        if left <= 0:
            self._forget(key)

    def rows(self) -> list[tuple[str, str, list[int]]]:
        """Start delays by function and level, as a gateway is told them."""
        return [(function, level, counts) for (function, level), counts in self.starts.rows()]

    def samples(self) -> list[Sample]:
        """All of it."""
        return [*of_histograms(START_DELAY, self.starts), *of_histograms(WAIT, self.waits)]


def _by_kind(items: Sequence[Item]) -> Iterable[tuple[Kind, Sequence[Item]]]:
    """The items of each kind. Mostly all are of one, which all of them share."""
    first = items[0][KIND]
    if all(item[KIND] is first for item in items):
        return [(first, items)]
    found: dict[Kind, list[Item]] = {}
    for item in items:
        found.setdefault(item[KIND], []).append(item)
    return found.items()
