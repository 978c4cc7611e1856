"""Schedules as the world sees them: which runs there may be is worked out here once more, by other arithmetic than the
rule's; which there are is read from the store."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from .client import WorldClient
from .clock import EPOCH
from .journal import ROUNDING, Execution, Journal
from .parts import TIMED
from .plan import Plan, Timed
from .sqlite_disk import Disk

_PREFIX = f"{TIMED}/0/"
_RUNS = "SELECT position, schedule, instant, fired_at FROM schedule_runs ORDER BY position"
_ROWS = "SELECT name, decided, runs, passed_over FROM schedules"


class _TimedRun(NamedTuple):
    position: int
    schedule: str
    instant: float
    fired_at: float

    @property
    def id(self) -> str:
        return f"{_PREFIX}{self.position}"


class Timetables:
    """Check of schedules: no run is early; of one schedule one runs at a time, unless they may overlap. `over` says of
    an id whether it was done or buried at some time."""

    def __init__(
        self,
        plan: Plan,
        disk: Disk,
        journal: Journal,
        client: WorldClient,
        over: Callable[[str], bool],
        settled: Mapping[str, float],
    ) -> None:
        self._disk = disk
        self._journal = journal
        self._client = client
        self._over = over
        self._settled = settled
        self._timed = {timed.n: timed for timed in plan.schedules}
        journal.begins.append(self._begins)

    def _runs(self) -> list[_TimedRun]:
        return [_TimedRun(*row) for row in self._disk.rows("state", _RUNS)]

    # ---- as runs begin

    def _begins(self, run: Execution) -> None:
        timed = self._timed.get(run.n)
        if timed is None or not run.id.startswith(_PREFIX):
            return
        runs = self._runs()
        mine = next((each for each in runs if each.id == run.id), None)
        now = EPOCH + run.start + self._journal.jumped + ROUNDING
        if mine is not None and now < mine.instant:
            self._journal.wrong(f"early: {run.id} of {timed.name} starts {mine.instant - now:.3f} s before its instant")
        if timed.overlap == "allow":
            return
        for other in self._journal.live.values():
            if other.n == run.n and other.id != run.id:
                text = f"overlap: {run.id} of {timed.name} starts in {run.where} while {other.id} runs in {other.where}"
                if other.frozen:
                    other.overtaken = text
                else:
                    self._journal.wrong(text)
        if timed.overlap == "queue" and mine is not None:
            before = [each for each in runs if each.schedule == timed.name and each.position < mine.position]
            for each in before:
                if not self._over(each.id):
                    self._journal.wrong(f"order: {run.id} of {timed.name} starts before {each.id} is over")

    # ---- at rest

    def at_rest(self) -> None:
        """Checks that each instant ran once or was passed over as it may be, and no more."""
        by_name: defaultdict[str, list[_TimedRun]] = defaultdict(list)
        for run in self._runs():
            by_name[run.schedule].append(run)
        rows = {name: counts for name, *counts in self._disk.rows("state", _ROWS)}
        for timed in self._timed.values():
            runs = sorted(by_name[timed.name], key=lambda run: run.instant)
            for line in (*self._firings(timed, runs), *self._counts(timed, runs, *rows[timed.name])):
                self._journal.wrong(f"schedule {timed.name}: {line}")
            for run in runs:
                if not self._over(run.id) and not self._was_busy(timed, runs, run):
                    self._journal.wrong(f"lost: {run.id} of {timed.name} never succeeded")

    def _firings(self, timed: Timed, runs: list[_TimedRun]) -> Iterator[str]:
        """Lines about runs that fired wrongly."""
        for run in runs:
            if not _is_instant(timed, run.instant):
                yield f"ran for {run.instant - EPOCH:.3f} s, which is none of its instants"
            if run.fired_at < run.instant:
                yield f"fired {run.instant - run.fired_at:.3f} s before its instant"
        for fired_at, count in Counter(run.fired_at for run in runs).items():
            missed = sum(1 for run in runs if run.fired_at == fired_at and run.instant < fired_at - timed.grace)
            most = {"skip": 0, "latest": 1, "all": timed.catch_up_max}[timed.catch_up]
            if missed > most or (missed and count > most):
                yield f"caught up with {count} runs at once, of which {missed} were missed, instead of {most}"
        if timed.catch_up == "skip":
            for before, run in pairwise(runs):
                passed = next(_instants(timed, before.instant), run.instant)
                if passed < run.instant and run.fired_at <= passed + timed.grace - ROUNDING:
                    yield f"passed over {passed - EPOCH:.3f} s, which nobody had missed by {run.fired_at - EPOCH:.3f} s"

    def _counts(
        self, timed: Timed, runs: list[_TimedRun], decided: float, fired: int, passed_over: int
    ) -> Iterator[str]:
        """Lines about counts in the row of a schedule that do not fit its runs."""
        if fired != len(runs):
            yield f"its row says {fired} runs, there are {len(runs)}"
        if timed.max_runs and fired > timed.max_runs:
            yield f"ran {fired} times instead of {timed.max_runs}"
        instants = sum(1 for instant in _instants(timed, self._client.scheduled[timed.n]) if instant <= decided)
        if fired + passed_over != instants:
            yield f"{fired} runs and {passed_over} passed over are not its {instants} instants up to then"

    def _was_busy(self, timed: Timed, runs: list[_TimedRun], run: _TimedRun) -> bool:
        """Whether a run that never began may have found one before it that was not over, or not known to be."""
        fired = run.fired_at - EPOCH - self._journal.jumped - ROUNDING
        known = self._journal.stories.get(run.id)
        began = known is not None and any(each.start >= fired for each in known.executions)  # not before a restore
        if timed.overlap != "skip" or began:
            return False
        before = [each.id for each in runs if each.position < run.position]
        if any(self._settled.get(id_, math.inf) >= fired for id_ in before):
            return True
        stories = [self._journal.stories[id_] for id_ in before if id_ in self._journal.stories]
        return any((each.end or math.inf) >= fired for story in stories for each in story.executions)


def _is_instant(timed: Timed, instant: float) -> bool:
    return next(_instants(timed, instant - 1e-6), None) == instant


def _instants(timed: Timed, after: float) -> Iterator[float]:
    """Instants of a schedule that are later than `after`, wall clock; a cron expression of the simulation says every so
    many seconds."""
    first, step = EPOCH + timed.starts, timed.every
    if timed.cron:
        step = float(timed.cron.split()[0].removeprefix("*/"))
        first = math.ceil(first / step) * step
    turn = max(0, math.floor((after - first) / step))
    while (instant := round(first + turn * step, 3)) <= EPOCH + timed.until:
        if instant > after:
            yield instant
        turn += 1
