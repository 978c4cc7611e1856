"""The outlook of a tree of jobs: how many items are still to come, when they may be done, and the jobs that it waits
on.

The forecast assumes that items behave as those so far: an item of a job makes as many for the next job as the items
before it did (one, before any ended), and as many end each second as did since the tree was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...model.job import JobStatus, TreeStatus


class JobOutlook(NamedTuple):
    """The outlook. `left`: number of items that have not ended, those not made yet included; `seconds` until they may
    have ended, None where none has ended yet, or the tree is over or paused; `path`: the jobs that the tree waits on,
    one after the other."""

    left: int
    seconds: float | None
    path: tuple[str, ...]


def outlook(tree: TreeStatus, now: float) -> JobOutlook:
    """The outlook at `now` (wall clock seconds), by the state of the tree."""
    if tree.over:
        return JobOutlook(0, None, ())
    jobs = {each.name: each for each in tree.jobs}
    expected: dict[str, float] = {}
    for each in tree.jobs:  # parents come before their children, or are found on the way
        _expect(each, jobs, expected)
    ended = {each.name: each.succeeded + each.failed for each in tree.jobs}
    left = sum(max(0.0, expected[name] - count) for name, count in ended.items())
    done, seconds = sum(ended.values()), None
    if done and left and now > tree.created_at and tree.state == "running":
        seconds = left * (now - tree.created_at) / done
    return JobOutlook(round(left), seconds, _path(tree.jobs, expected, ended))


def _expect(job: JobStatus, jobs: Mapping[str, JobStatus], expected: dict[str, float]) -> float:
    """Expected number of items that a job will have had in the end."""
    if job.name in expected:
        return expected[job.name]
    made = job.pending + job.succeeded + job.failed
    found = float(made)
    if job.parents and not job.complete_at:
        parents = [jobs[name] for name in job.parents]
        if job.gather:
            found = 1.0
        else:
            ended = sum(each.succeeded for each in parents)
            each_makes = made / ended if ended else 1.0
            coming = sum(_expect(each, jobs, expected) - each.succeeded - each.failed for each in parents)
            found += max(0.0, coming) * each_makes
    expected[job.name] = found
    return found


def _path(jobs: list[JobStatus], expected: Mapping[str, float], ended: Mapping[str, int]) -> tuple[str, ...]:
    """The longest chain of open jobs that begins at the one with most to do, of those that wait for no other."""
    open_ = {each.name: each for each in jobs if not each.complete_at}
    first = [each for each in open_.values() if not any(parent in open_ for parent in each.parents)]
    if not first:
        return ()
    begin = max(first, key=lambda each: expected[each.name] - ended[each.name])
    behind: dict[str, tuple[str, ...]] = {}

    def longest(name: str) -> tuple[str, ...]:
        if name not in behind:
            ways = [longest(each.name) for each in open_.values() if name in each.parents]
            behind[name] = (name, *max(ways, key=len, default=()))
        return behind[name]

    return longest(begin.name)
