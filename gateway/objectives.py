"""Objectives as a gateway observes them: what schedulers tell of start delays, and its own submissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..foundation.clock import Clock
from ..model.alert import ObjectiveOverview
from ..model.errors import InvalidRequest
from ..model.histogram import LABEL_SETS
from ..model.metrics import OBJECTIVE, OBJECTIVE_DELAY, WAIT_BOUNDS, Sample
from .rules.objectives import ACCEPTED, LOOK_BACK, START_DELAY, Objective, Rising, judged_objectives, within
from .submissions_seen import ACCEPTED as TAKEN
from .submissions_seen import SubmissionsSeen

#: Schedulers that are remembered, the last ones that told.
MOST = 100
#: Seconds for which a silent one's counts are kept.
SILENT = LOOK_BACK


class Objectives:
    """Results of the objectives lately. Nothing of it is durable."""

    def __init__(self, objectives: Mapping[str, Objective], submissions: SubmissionsSeen, clock: Clock) -> None:
        self._objectives = objectives
        self._submissions = submissions
        self._clock = clock
        self._accepted = Rising(began=True)
        self._starts: dict[str, Rising] = {}

    def tell(self, scheduler: str, rows: Sequence[tuple[str, str, Sequence[int]]]) -> None:
        """A scheduler tells how many items started after which delay: function, level, and its counts by bucket."""
        if not scheduler:
            raise InvalidRequest("which scheduler tells of start delays? Its name is missing")
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
        """Each objective of late."""
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
        """The objectives themselves."""
        found = []
        for level, objective in self._objectives.items():
            labels = ("priority", level)
            found.append(Sample(OBJECTIVE, (("objective", START_DELAY), labels), objective.start_share))
            found.append(Sample(OBJECTIVE, (("objective", ACCEPTED), labels), objective.accepted_share))
            found.append(Sample(OBJECTIVE_DELAY, (labels,), objective.start))
        return found
