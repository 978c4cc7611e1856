"""Limits as they are seen from outside: a pure function from the journal of the functions and the quotas to the
breaches of them.

A run counts from its start to its last sign of life, so that one that was killed never counts for longer than it ran.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...model.limits import Quota
from .journal import START, Line
from .verdict import Expected, Finding


class LimitSeen(NamedTuple):
    """One limit as it was seen: the most that ran at once, and the most starts beyond what its rate lets start in the
    same time."""

    name: str
    most: int
    burst: float


def seen_of_limits(
    lines: Iterable[Line], expected: Mapping[str, Expected], quotas: Sequence[Quota], fresh: Sequence[float] = ()
) -> tuple[list[LimitSeen], list[Finding]]:
    """Each quota with a limit as it was seen, and findings where it was exceeded. `fresh`: times at which a scheduler
    may have begun that knows of no start before it, so that its buckets are full."""
    runs = _runs(lines)
    calls = {quota.function: quota.downstreams for quota in quotas if quota.downstreams}
    seen: list[LimitSeen] = []
    found: list[Finding] = []
    for quota in quotas:
        if not (quota.concurrency or quota.rate):
            continue
        name = quota.function or quota.tenant or quota.downstream
        mine = [run for run in runs if run[2] in expected and _pays(quota, expected[run[2]], calls)]
        (most, when), (burst, at) = _at_once(mine), _beyond_rate(mine, quota.rate, fresh)
        seen.append(LimitSeen(name, most, round(burst, 2)))
        if quota.concurrency and most > quota.concurrency:
            found.append(Finding("beyond", "", when, f"{name}: {most} at once, of {quota.concurrency}"))
        # Items sent to a worker that stood still begin late: no more of them than may be out at once.
        if quota.rate and burst > max(1.0, quota.burst or quota.rate) + quota.concurrency + 1e-6:
            found.append(Finding("beyond", "", at, f"{name}: {burst:.2f} starts beyond {quota.rate:g}/s"))
    return seen, found


def _runs(lines: Iterable[Line]) -> list[tuple[float, float, str]]:
    runs: dict[tuple[str, int, int], list[float]] = {}
    for line in sorted(lines, key=lambda line: line.at):
        who = (line.id, line.fence, line.pid)
        if line.word == START:
            runs[who] = [line.at, line.at]
        elif who in runs:
            runs[who][1] = line.at
    return sorted((first, last, id) for (id, _, _), (first, last) in runs.items())


def _pays(quota: Quota, item: Expected, calls: Mapping[str, Sequence[str]]) -> bool:
    if quota.downstream:
        return quota.downstream in calls.get(item.function, ())
    return quota.tenant == item.tenant if quota.tenant else quota.function == item.function


def _at_once(runs: Sequence[tuple[float, float, str]]) -> tuple[int, float]:
    """The most runs at one moment, and that moment; a run that ends as another starts does not run beside it."""
    moments = sorted([(first, 1) for first, _, _ in runs] + [(last, -1) for _, last, _ in runs])
    running, most = 0, (0, 0.0)
    for at, step in moments:
        running += step
        if running > most[0]:
            most = running, at
    return most


def _beyond_rate(runs: Sequence[tuple[float, float, str]], rate: float, fresh: Sequence[float]) -> tuple[float, float]:
    """The highest level of a bucket, and the time of it: the most starts of any time beyond the rate's allowance."""
    level, most = 0.0, (0.0, 0.0)
    if not rate:
        return most
    last, again = 0.0, deque(sorted(fresh))
    for first, _, _ in runs:
        while again and again[0] <= first:
            again.popleft()
            level = 0.0
        level = max(0.0, level - (first - last) * rate) + 1.0
        last = first
        if level > most[0]:
            most = level, first
    return most
