"""Run times of an executor's functions, told to its worker once a second: counts in buckets, never single runs."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from ..model.histogram import Counts, Exemplar, Histograms, count_sorted
from ..model.metrics import RUN_BOUNDS
from ..model.outcome import Outcome
from ..model.workload import Ended
from .entry import PreparedKind
from .frames import RunTimes

#: Seconds between two frames.
EVERY = 1.0
_SUCCESS = int(Outcome.SUCCESS)


class Stopwatch:
    """The run times that were not told yet. `ran` is called on the loop; threads append to `threaded`, which is looked
    through when their runs are collected. Plain successes are a list for each function, at its kinds, counted when
    they are told."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[Any], None], wall: Callable[[], float]) -> None:
        self._loop = loop
        self._send = send
        self._wall = wall
        self._timer: asyncio.TimerHandle | None = None
        self._kinds: list[PreparedKind] = []  # that have successes which were not told
        self._found: dict[tuple[str, int], Counts] = {}
        self.threaded: deque[tuple[PreparedKind, Ended | None, float, str]] = deque()

    def collect(self) -> None:
        """Adds the times that threads measured."""
        while self.threaded:
            self.ran(*self.threaded.popleft())

    def ran(self, kind: PreparedKind, ended: Ended | None, seconds: float, trace_id: str = "") -> None:
        """Adds a run that is over. `trace_id`: it is of a sampled trace."""
        if ended is None and not trace_id:
            if not kind.ran:
                self._kinds.append(kind)
                self._soon()
            kind.ran.append(seconds)
            return
        counts = self._counts(kind.name, _SUCCESS if ended is None else ended.outcome)
        at = bisect_left(RUN_BOUNDS, seconds)
        counts.buckets[at] += 1
        counts.sum += seconds
        if trace_id:
            counts.exemplars[at] = Exemplar(trace_id, seconds, self._wall())

    def _counts(self, function: str, outcome: int) -> Counts:
        found = self._found.get((function, outcome))
        if found is None:
            self._soon()
            found = self._found[function, outcome] = Counts(RUN_BOUNDS)
        return found

    def _soon(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(EVERY, self._told)

    def _told(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Sends the run times to the worker."""
        kinds, self._kinds = self._kinds, []
        for kind in kinds:
            counts = self._counts(kind.name, _SUCCESS)
            if max(kind.ran) <= RUN_BOUNDS[0]:
                counts.buckets[0] += len(kind.ran)
            else:
                kind.ran.sort()
                count_sorted(counts.buckets, RUN_BOUNDS, kind.ran)
            counts.sum += sum(kind.ran)
            kind.ran.clear()
        found, self._found = self._found, {}
        if found:
            rows = [
                (
                    function,
                    outcome,
                    counts.buckets,
                    counts.sum,
                    {at: (one.trace_id, one.value, one.at) for at, one in counts.exemplars.items()},
                )
                for (function, outcome), counts in found.items()
            ]
            self._send(RunTimes(rows))


def take(times: Histograms, frame: RunTimes, functions: Collection[str]) -> None:
    """Adds the run times that an executor of these functions sent. A row of another function was written by user code,
    and is left out."""
    known = {int(outcome): outcome.name.lower() for outcome in Outcome}
    for function, outcome, buckets, total, exemplars in frame.rows:
        if function in functions and outcome in known:
            examples = {at: Exemplar(*one) for at, one in exemplars.items() if 0 <= at <= len(RUN_BOUNDS)}
            times.add((function, known[outcome]), buckets, total, examples)
