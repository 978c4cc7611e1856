"""Objectives (SLOs) as a gateway observes them, from start delays that schedulers report, and its own submissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..foundation.clock import Clock
from ..model.alert import ObjectiveOverview
from ..model.errors import InvalidRequest
from ..model.histogram import LABEL_SETS
from ..model.metrics import OBJECTIVE, OBJECTIVE_DELAY, WAIT_BOUNDS, Sample
from .rules.objectives import ACCEPTED, LOOK_BACK, START_DELAY, Objective, Rising, judged_objectives, within
from .submission_measures import ACCEPTED as TAKEN
from .submission_measures import SubmissionMeasures

#: Most schedulers that are remembered, those that reported last.
MOST = 100
#: Seconds for which the counts of a silent scheduler are kept.
SILENT = LOOK_BACK


class Objectives:
    """The results of objectives over the last minutes. Nothing of it is durable."""

    def __init__(self, objectives: Mapping[str, Objective], submissions: SubmissionMeasures, clock: Clock) -> None:
        self._objectives = objectives
        self._submissions = submissions
        self._clock = clock
        self._accepted = Rising(began=True)
        self._starts: dict[str, Rising] = {}

    def tell(self, scheduler: str, rows: Sequence[tuple[str, str, Sequence[int]]]) -> None:
        """Takes a scheduler's report of start delays: rows of function, priority, and counts by bucket."""
        if not scheduler:
            raise InvalidRequest("the report of start delays has no scheduler: expected its name")
        counts = {}
        for function, level, buckets in rows[:LABEL_SETS]:
            objective = self._objectives.get(level)
            if objective is not None:
                counts[function, level] = (within(buckets, WAIT_BOUNDS, objective.start), sum(buckets))
        rising = self._starts.pop(scheduler[:200], None) or Rising()
        self._starts[scheduler[:200]] = rising
        rising.seen(counts, self._clock.monotonic())
        while len(self._starts) > MOST:
            del self._starts[next(iter(self._starts))]

    def observed(self) -> list[ObjectiveOverview]:
        """The result of each objective over the last minutes."""
        now = self._clock.monotonic()
        counts: dict[tuple[str, str], tuple[int, int]] = {}
        for (function, level, result), count in self._submissions.results.items():
            met, total = counts.get((function, level), (0, 0))
            counts[function, level] = (met + (count if result == TAKEN else 0), total + count)
        self._accepted.seen(counts, now)
        self._starts = {name: each for name, each in self._starts.items() if now - each.at < SILENT}
        starts = [each.lately() for each in self._starts.values()]
        return judged_objectives(starts, self._accepted.lately(), self._objectives)

    def samples(self) -> list[Sample]:
        """The targets as samples of metrics."""
        found = []
        for level, objective in self._objectives.items():
            labels = ("priority", level)
            found.append(Sample(OBJECTIVE, (("objective", START_DELAY), labels), objective.start_share))
            found.append(Sample(OBJECTIVE, (("objective", ACCEPTED), labels), objective.accepted_share))
            found.append(Sample(OBJECTIVE_DELAY, (labels,), objective.start))
        return found
