"""The verdict on a run: a pure function of its journal, the items put in, and the faults done.

lost        put in, and never ended as it had to
overlaps    an older execution of an item gave a sign of life after a newer one had started
early       started before it was due: before its submission's time, or the attempt after a failure before its delay
fences      an execution under a fence that is not above an older one's
duplicates  completions beyond an item's first. One is *explained* when a fault hit a process, wire or store while that
            held the item: from when the first completion's execution was taken from its source until its outcome must
            have been settled
starved     duplicates that only a part without a processor explains, which is the machine's doing (starved.py)
explicable  executions of which a second one would have been explained: the lower, the more "unexplained 0" says
charged     attempts beyond those that the functions themselves failed
began_anew  a store started although a file of its last run was gone
kept_for_strangers  a part grew by what callers without a right began and never ended
excess      a fault explains more duplicates than were in flight, where it is known how many may be
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..percentiles import percentile
from .journal import CRASH, ENDS, FATAL, RETRY, START, SUCCESS, Line
from .path import DoneFault, DoneFaults, Owners, PathExecution, taken


class Expected(NamedTuple):
    """One item that was put in. `dies`: it must end as a dead letter. `due`: it may not start before (0: at once);
    `put`: it was not there before (0: not known); both by CLOCK_MONOTONIC. `function` and `tenant`: of items of the
    queue."""

    source: str
    dies: bool = False
    due: float = 0.0
    put: float = 0.0
    function: str = ""
    tenant: str = ""


@dataclass(slots=True)
class JournaledRun:
    """One execution. Invariant: `last` is its last sign of life; `end` is empty while no end was written."""

    start: Line
    last: float
    end: str = ""
    until: float = 0.0


class Finding(NamedTuple):
    """One event that must not happen."""

    law: str
    id: str
    at: float
    detail: str


@dataclass(slots=True)
class FaultVerdict:
    """Counts, and each case for people. `recoveries`: by fault, seconds until each item in flight ran on; `repeated`:
    by fault, number of duplicates of which it is the latest explanation."""

    items: int = 0
    starts: int = 0
    completed: int = 0
    dead: int = 0
    duplicates: int = 0
    starved: int = 0
    explicable: int = 0
    charged: int = 0
    findings: list[Finding] = field(default_factory=list)
    recoveries: list[list[float]] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)

    def count(self, law: str) -> int:
        """Number of findings of one law."""
        return sum(finding.law == law for finding in self.findings)

    @property
    def clean(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def recovery(self, share: float) -> float:
        """The percentile of all recoveries, seconds."""
        return percentile([each for one in self.recoveries for each in one], share)


NOBODY_SEEN = Owners()


def judge(
    lines: Iterable[Line],
    expected: Mapping[str, Expected],
    faults: Sequence[DoneFault] = (),
    *,
    dead_letters: Collection[str] = (),
    damaged: Sequence[str] = (),
    owners: Owners = NOBODY_SEEN,
    lease: float = 2.0,
    settled: float = 2.0,
    wall: float = 0.0,
    in_flight: int = 0,
    starved: Sequence[DoneFault] = (),
) -> FaultVerdict:
    """Judges a run. `owners`: the owners of streams over time; `in_flight`: number of duplicates that one fault may
    explain; 0: any. `lease`: seconds before an execution's start in which its item may have been held, where no claim
    says it; `settled`: seconds after a completion in which its settlement may be under way; `wall`: seconds that the
    wall clock is ahead of the journal's; `starved`: the times for which the machine kept a part waiting."""
    verdict = FaultVerdict(items=len(expected), recoveries=[[] for _ in faults], repeated=[0] * len(faults))
    find = verdict.findings.append
    for text in damaged:
        find(Finding("damaged", "", 0.0, f"not a line: {text!r}"))
    runs = _runs(lines, verdict)
    dead = set(dead_letters)
    done, waits = DoneFaults(faults), DoneFaults(starved)
    crashes = {run.start.pid: run.last for mine in runs.values() for run in mine if run.end == CRASH}
    for id, mine in runs.items():
        mine.sort(key=lambda run: run.start.at)
        verdict.starts += len(mine)
        if id not in expected:
            find(Finding("strange", id, mine[0].start.at, "nobody put it in"))
            continue
        if len(mine) > 1:
            _compare(id, mine, find)
        item = expected[id]
        if item.due and mine[0].start.at < item.due:
            find(Finding("early", id, mine[0].start.at, f"{item.due - mine[0].start.at:.3f} s before it was due"))
        verdict.charged += max(0, max(run.start.attempt for run in mine) - 1 - _own_failures(mine))
        paths = [
            # An item that came back came from another stream, whose owners the item's id does not tell.
            PathExecution(
                item.source,
                run.start,
                taken(item.source, run.start, item.put, lease, wall),
                again,
                None if again else owners.held(run.start, run.last + settled),
            )
            for run, again in zip(mine, (False, *[True] * (len(mine) - 1)), strict=True)
        ]
        _duplicates(id, mine, paths, (done, waits), crashes, verdict, settled)
        _recoveries(mine, paths, faults, done, verdict)
    for id, item in expected.items():
        ends = {run.end for run in runs.get(id, ())}
        ended = id in dead or FATAL in ends if item.dies else SUCCESS in ends
        verdict.completed += ended and not item.dies
        verdict.dead += ended and item.dies
        if not ended:
            tried = len(runs.get(id, ()))
            find(Finding("lost", id, runs[id][-1].last if tried else 0.0, f"{item.source}: no end in {tried} runs"))
        if not item.dies and id in dead:
            find(
                Finding("dead", id, runs[id][-1].last if id in runs else 0.0, "a dead letter, though it had to succeed")
            )
    for fault, count in zip(faults, verdict.repeated, strict=True):
        if in_flight and count > in_flight:
            find(Finding("excess", "", fault.begin, f"{fault.kind} repeated {count} items, of {in_flight} in flight"))
    return verdict


def _runs(lines: Iterable[Line], verdict: FaultVerdict) -> dict[str, list[JournaledRun]]:
    """Executions of each item. Lines of one execution are those of one id, fence and process."""
    runs: dict[str, list[JournaledRun]] = {}
    open_runs: dict[tuple[str, int, int], JournaledRun] = {}
    for line in sorted(lines, key=lambda line: line.at):
        who = (line.id, line.fence, line.pid)
        if line.word == START:
            twin = open_runs.get(who)
            if twin is not None and not twin.end:
                detail = f"started twice in pid {line.pid} under fence {line.fence}"
                verdict.findings.append(Finding("overlaps", line.id, line.at, detail))
            run = open_runs[who] = JournaledRun(line, line.at)
            runs.setdefault(line.id, []).append(run)
            continue
        known = open_runs.get(who)
        if known is None or known.end in ENDS:
            what = "without a start" if known is None else f"after its {known.end}"
            verdict.findings.append(Finding("strange", line.id, line.at, f"{line.word} {what}"))
            continue
        known.last = line.at
        if line.word in ENDS or line.word == CRASH:
            known.end, known.until = line.word, line.until
    return runs


def _compare(id: str, runs: list[JournaledRun], find: Callable[[Finding], None]) -> None:
    """Finds overlaps, fences that did not rise, and attempts that began before their delay was over."""
    alive, fence = runs[0].last, runs[0].start.fence
    for run in runs[1:]:
        start = run.start
        if start.at < alive:
            detail = f"pid {start.pid} began {alive - start.at:.3f} s before the last sign of an older run"
            find(Finding("overlaps", id, start.at, detail))
        if start.fence <= fence:
            find(Finding("fences", id, start.at, f"began under fence {start.fence}, after {fence}"))
        alive, fence = max(alive, run.last), max(fence, start.fence)
    for index, run in enumerate(runs):
        if not run.until:
            continue
        for later in runs[index + 1 :]:
            # An attempt that comes again means that the failure was never told: then there is no delay to keep.
            told = later.start.attempt > run.start.attempt if run.end == RETRY else False
            if told and later.start.at < run.until:
                find(Finding("early", id, later.start.at, f"{run.until - later.start.at:.3f} s before its delay ended"))


def _own_failures(runs: list[JournaledRun]) -> int:
    return len({run.start.attempt for run in runs if run.end == RETRY})


def _duplicates(
    id: str,
    runs: list[JournaledRun],
    paths: list[PathExecution],
    causes: tuple[DoneFaults, DoneFaults],
    crashes: Mapping[int, float],
    verdict: FaultVerdict,
    settled: float,
) -> None:
    faults, waits = causes
    completed = [number for number, run in enumerate(runs) if run.end in (SUCCESS, FATAL)]
    for number, following in itertools.zip_longest(completed, completed[1:]):
        run = runs[number]
        why = faults.latest(paths[number], run.last + settled)
        crash = crashes.get(run.start.pid)
        explained = why is not None or (crash is not None and run.last <= crash <= run.last + settled)
        starved = not explained and waits.latest(paths[number], run.last + settled) is not None
        verdict.explicable += explained or starved
        if following is None:
            continue
        verdict.duplicates += 1
        again = runs[following]
        if why is not None:
            verdict.repeated[why] += 1
        elif starved:
            verdict.starved += 1
        elif not explained:
            detail = f"completed again {again.last - run.last:.3f} s later, and no fault that held it explains it"
            verdict.findings.append(Finding("unexplained", id, again.last, detail))


def _recoveries(
    runs: list[JournaledRun],
    paths: list[PathExecution],
    faults: Sequence[DoneFault],
    done: DoneFaults,
    verdict: FaultVerdict,
) -> None:
    """Notes the recovery of each execution that a fault found running: the seconds until it ended, or the item was
    started again. When another fault on its path came before that, it counts from the later one."""
    for index, run in enumerate(runs):
        ended = run.last if run.end in ENDS else float("inf")
        ran_on = min(ended, runs[index + 1].start.at if index + 1 < len(runs) else float("inf"))
        if ran_on == float("inf"):
            continue
        number = done.since(paths[index], ran_on)
        if number is not None:
            since = faults[number].back or faults[number].begin
            verdict.recoveries[number].append(max(0.0, ran_on - since))
