"""Objectives (SLOs): the share of work that meets a target, per function and priority, over the last minutes.

    start_delay  workloads started within the delay that their priority allows, counted from their due times
    accepted     submissions that were accepted, of all correct ones

Parts report counts that only rise; counts of a part from before its restart count no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...model.alert import ObjectiveOverview

START_DELAY, ACCEPTED = "start_delay", "accepted"
#: Seconds that are looked back on, and seconds between two points in them: a few hundred numbers for each function.
LOOK_BACK = 300.0
POINTS = 10.0
#: Items that must be counted before a share means anything: of fewer, one late item is more than a twentieth.
LEAST = 20


class Objective(NamedTuple):
    """The objectives of a priority: the share that must start within `start` seconds of its due time, and the share of
    submissions that must be accepted."""

    start: float
    start_share: float
    accepted_share: float


#: Function and level.
Of = tuple[str, str]
#: Number of items that met it, and number of all.
Met = tuple[int, int]


class Rising:
    """The counts of one part over the last minutes. `began`: the part is known from its beginning, so that all its
    counts are recent. Invariant: the points rise in time, the last is the present one."""

    def __init__(self, *, began: bool = False) -> None:
        self._began = began
        self._points: deque[tuple[float, Mapping[Of, Met]]] = deque()

    def seen(self, counts: Mapping[Of, Met], now: float) -> None:
        """Takes the counts since the part began; `now` is monotonic seconds."""
        points = self._points
        if points and any(counts.get(of, (0, 0))[1] < total for of, (_, total) in points[-1][1].items()):
            points.clear()
            self._began = True  # anew
        if not points and self._began:
            points.append((now, {}))
        if len(points) > 1 and now - points[-2][0] < POINTS:
            points.pop()
        points.append((now, counts))
        while len(points) > 2 and now - points[0][0] > LOOK_BACK:
            points.popleft()

    def lately(self) -> dict[Of, Met]:
        """The counts of the last minutes."""
        if not self._points:
            return {}
        (_, before), (_, now) = self._points[0], self._points[-1]
        found = {}
        for of, (met, total) in now.items():
            old_met, old_total = before.get(of, (0, 0))
            if total > old_total:
                found[of] = (met - old_met, total - old_total)
        return found

    @property
    def at(self) -> float:
        """The time of the last counts, in monotonic seconds."""
        return self._points[-1][0] if self._points else float("-inf")


def within(buckets: Sequence[int], bounds: Sequence[float], most: float) -> int:
    """Number of a histogram's values that are surely at most `most`: those in buckets up to it."""
    return sum(count for count, bound in zip(buckets, bounds, strict=False) if bound <= most)


def judged_objectives(
    starts: Iterable[Mapping[Of, Met]], accepted: Mapping[Of, Met], objectives: Mapping[str, Objective]
) -> list[ObjectiveOverview]:
    """The results of each function and priority against its objectives; unknown priorities are left out."""
    sums: dict[Of, Met] = {}
    for each in starts:
        for of, (met, total) in each.items():
            before = sums.get(of, (0, 0))
            sums[of] = (before[0] + met, before[1] + total)
    found = []
    for name, counted in ((START_DELAY, sums), (ACCEPTED, dict(accepted))):
        for (function, level), (met, total) in sorted(counted.items()):
            objective = objectives.get(level)
            if objective is None or total <= 0:
                continue
            target = objective.start_share if name == START_DELAY else objective.accepted_share
            allowed = objective.start if name == START_DELAY else 0.0
            found.append(ObjectiveOverview(name, function, level, target, met / total, total, allowed))
    return found


def is_missed(one: ObjectiveOverview) -> bool:
    """Whether an objective is missed, by a share of enough items."""
    return one.items >= LEAST and one.observed < one.target
