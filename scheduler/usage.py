"""Usage: the slot-seconds and the runs of each ⟨function, tenant⟩, whether or not quotas are set.

A run is counted when it ends; its time accrues also before, with each cut, from when its worker was given it. Items of
one kind that end together are one sum. Of mixed ones each item is counted while there are few; of many, one batch in
sixteen stands for all, so that the sums are right and shares are close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from ..model.metrics import USAGE_ITEMS, USAGE_TIME, USAGE_UNITS, Sample
from ..model.name import is_name
from ..model.unit_rate import MOST_USED
from ..model.usage import (
    HOUR,
    JOINED,
    MOST_FUNCTIONS,
    MOST_UNIT_KINDS,
    MOST_UNIT_NAMES,
    OTHERS,
    REPORT_ROWS,
    UsageKind,
    UsageReport,
    UsageRow,
    counted_as,
    of_unit,
    unit_of,
)
from ..model.workload import INDEX_BITS, Kind
from .rules.flow import KIND, Item
from .sessions import WorkerSession

#: Mixed items of a second of which each is counted; of those after them one batch in so many.
EXACT, ONE_IN = 2_000, 16
#: The most that one row may tell.
MOST_MICROS = (1 << 50) - 1
#: Kinds with other collections and priorities lead to the same place; so many are remembered.
ROUTES = 1 << 16


class _Used:
    """Use since the last cut."""

    __slots__ = ("items", "seconds")

    def __init__(self) -> None:
        self.items = 0
        self.seconds = 0.0


class SchedulerUsage:
    """Counts for one life of a scheduler. Times are monotonic seconds.

    Invariants: a report is the same until it is accepted, and what is in it is nowhere else; what is kept is at most
    MOST_KINDS kinds of all hours, and sums of the others.
    """

    def __init__(self, workers: Mapping[str, WorkerSession], downstreams: Callable[[str], Iterable[str]]) -> None:
        self._workers = workers
        self._downstreams = downstreams
        self._routes: dict[Kind, _Used] = {}
        self._used: dict[UsageKind, _Used] = {}  # of no hour yet
        self._cut_at = 0.0
        self._hour = 0
        self._unit_names: set[str] = set()
        self._units: dict[UsageKind, float] = {}  # since the last cut
        self._kept: dict[UsageKind, _Used] = {}  # cut and not in a report
        self._report: list[UsageRow] | None = None
        self._number = 0
        self._functions: dict[str, _Used] = {}  # since this scheduler began
        self._by_unit: dict[tuple[str, str, str], float] = {}  # likewise
        self._second, self._exact = 0, EXACT
        self._passed, self._passed_time = 0, 0.0  # of items that were not counted since a batch was
        self._skipped: list[tuple[list[Kind], Mapping[int, float], Sequence[int], float]] = []

    def ended(
        self, worker: WorkerSession, counts: Mapping[int, int], refs: Sequence[int], items: list[Item], now: float
    ) -> None:
        """Counts items that are out no longer; `counts` has how many of each flight there."""
        cut, flights, size = self._cut_at, worker.flights, len(items)
        if worker.gone_on:
            for ref, item in zip(refs, items, strict=True):
                since = worker.gone_on.pop(ref, flights[ref >> INDEX_BITS].at)
                self._add(item[KIND], 1, now - max(cut, since))
            return
        times = {number: max(0.0, now - max(cut, flights[number].at)) for number in counts}
        whole = sum([times[number] * count for number, count in counts.items()])
        first = items[0][KIND]
        if first is items[-1][KIND] and all(item[KIND] is first for item in items):
            self._add(first, size, whole)
            return
        if int(now) != self._second:
            self._second, self._exact = int(now), EXACT
        kinds = [item[KIND] for item in items]
        if self._exact > 0:
            self._exact -= size
            self._add_mixed(kinds, times, refs)
            return
        self._passed += size
        self._passed_time += whole
        self._skipped.append((kinds, times, refs, whole))
        if len(self._skipped) >= ONE_IN:
            self._add_skipped()

    def used(self, kind: Kind, used: Iterable[tuple[str, str, float]]) -> None:
        """Counts the units that a run reported."""
        for downstream, unit, amount in used:
            if unit not in self._unit_names:
                if len(self._unit_names) >= MOST_UNIT_NAMES:
                    unit = OTHERS
                elif is_name(unit):
                    self._unit_names.add(unit)
            if 0 <= amount < math.inf and (unit in self._unit_names or unit == OTHERS):
                place = UsageKind(0, kind.function, kind.tenant, of_unit(downstream, unit))
                if place not in self._units and len(self._units) >= MOST_UNIT_KINDS:
                    place = UsageKind(0, kind.function, OTHERS, of_unit("", unit))
                if place in self._units or len(self._units) < 2 * MOST_UNIT_KINDS:
                    self._units[place] = self._units.get(place, 0.0) + min(amount, MOST_USED)

    def _add_skipped(self) -> None:
        """Counts the last batch that was not counted as standing for all such."""
        kinds, times, refs, whole = self._skipped[-1]
        each, self._passed = divmod(self._passed, len(kinds))
        self._add_mixed(kinds, times, refs, each, self._passed_time / whole if whole else 1.0)
        self._skipped, self._passed_time = [], 0.0

    def _add_mixed(
        self,
        kinds: list[Kind],
        times: Mapping[int, float],
        refs: Sequence[int],
        each: int = 1,
        scale: float = 1.0,
    ) -> None:
        """Counts items of several kinds; each stands for so many, and its time for that of so many."""
        for kind, ref in zip(kinds, refs, strict=True):
            one = self._routes.get(kind) or self._route(kind)
            one.items += each
            one.seconds += times[ref >> INDEX_BITS] * scale

    def paused(self, worker: WorkerSession, refs: Iterable[int], now: float) -> None:
        """Counts no room for these from now on."""
        for ref in refs:
            since = worker.gone_on.pop(ref, worker.flights[ref >> INDEX_BITS].at)
            self._add(worker.open[ref][KIND], 0, now - max(self._cut_at, since))

    def cut(self, now: float, wall: float) -> None:
        """Counts the use until now in the hour of this moment."""
        if self._skipped:
            self._add_skipped()
        self._accrue(now)
        self._cut_at, self._hour = now, int(wall) // HOUR
        kept, functions, idle = self._kept, self._functions, 0
        called: dict[str, str] = {}
        for (_, function, tenant, _), used in self._used.items():
            items, seconds = used.items, used.seconds
            if not (items or seconds):
                idle += 1
                continue
            used.items, used.seconds = 0, 0.0
            _sum(
                functions,
                function if function in functions or len(functions) < MOST_FUNCTIONS else OTHERS,
                items,
                seconds,
            )
            if function not in called:
                called[function] = JOINED.join(self._downstreams(function))
            kind = UsageKind(self._hour, function, tenant, called[function])
            _sum(kept, counted_as(kind, kept, len(kept)), items, seconds)
        units, self._units = self._units, {}
        for place, amount in units.items():
            kind = place._replace(hour=self._hour)
            _sum(kept, counted_as(kind, kept, len(kept)), 0, amount / 1e6)
            self._sum_units(place, amount)
        if idle > len(self._used) // 2:
            self._used, self._routes = {}, {}

    def tick(self, now: float, wall: float) -> None:
        """Cuts at the end of an hour, so that each hour has the use in it."""
        if int(wall) // HOUR != self._hour:
            self.cut(now, wall)

    def report(self, scheduler: str) -> UsageReport | None:
        """The next report: the same until it is accepted. None: there is nothing to report."""
        if self._report is None:
            if not self._kept:
                return None
            told = [*islice(self._kept, REPORT_ROWS)]
            rows = [(kind, self._kept.pop(kind)) for kind in told]
            self._report = [
                UsageRow(*kind, used.items, min(round(used.seconds * 1e6), MOST_MICROS)) for kind, used in rows
            ]
            self._number += 1
        return UsageReport(scheduler, self._number, self._report)

    def accepted(self, number: int) -> None:
        """Forgets a report that is kept somewhere durable."""
        if number == self._number:
            self._report = None

    def samples(self) -> list[Sample]:
        """Samples of usage by function alone, since tenants may be any number."""
        found = []
        for function, used in self._functions.items():
            labels = (("function", function),)
            found += [Sample(USAGE_ITEMS, labels, used.items), Sample(USAGE_TIME, labels, used.seconds)]
        for (function, downstream, unit), amount in self._by_unit.items():
            of_unit = (("function", function), ("downstream", downstream), ("unit", unit))
            found.append(Sample(USAGE_UNITS, of_unit, amount))
        return found

    def _sum_units(self, place: UsageKind, amount: float) -> None:
        """Adds to the use by function, downstream and unit since this scheduler began."""
        key = (place.function, *unit_of(place.downstreams))
        if key not in self._by_unit and len(self._by_unit) >= MOST_FUNCTIONS:
            key = (OTHERS, "", "")
        self._by_unit[key] = self._by_unit.get(key, 0.0) + amount

    def _accrue(self, now: float) -> None:
        """Adds the time of items that are out, but for those that wait for other work."""
        cut = self._cut_at
        for worker in self._workers.values():
            since = {number: max(0.0, now - max(cut, flight.at)) for number, flight in worker.flights.items()}
            for ref, item in worker.open.items():
                if ref in worker.gone_on:
                    self._add(item[KIND], 0, now - max(cut, worker.gone_on[ref]))
                elif ref not in worker.parents:
                    self._add(item[KIND], 0, since[ref >> INDEX_BITS])

    def _add(self, kind: Kind, items: int, seconds: float) -> None:
        used = self._routes.get(kind) or self._route(kind)
        used.items += items
        used.seconds += max(0.0, seconds)

    def _route(self, kind: Kind) -> _Used:
        found = self._routes.get(kind)
        if found is None:
            place = counted_as(UsageKind(0, kind.function, kind.tenant), self._used, len(self._used))
            found = self._used.setdefault(place, _Used())
            if len(self._routes) >= ROUTES:
                self._routes.clear()
            self._routes[kind] = found
        return found


def _sum(sums: dict[Any, _Used], place: Any, items: int, seconds: float) -> None:
    kept = sums.get(place)
    if kept is None:
        kept = sums[place] = _Used()
    kept.items += items
    kept.seconds += seconds
