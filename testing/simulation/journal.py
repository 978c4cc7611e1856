"""The journal of all runs as they truly were, when and where: kept by the world, outside of every host, by true
time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...model.job import ResultPage
from .world import World

#: Seconds by which an item may start before its time: what rounding to microseconds makes of equal times.
ROUNDING = 1e-3


@dataclass(slots=True, eq=False)
class Execution:
    """One run. `end` None: it has not ended. `how` it ended; `killed` when its process ended under it.

    attempt    as it was told
    frozen     its process stands still, since `froze`; `thawed`: when that last went on
    overtaken  what will be wrong if that process ever goes on
    told       when it was told to end (0: it was not), by its time-out if `timed_out`
    excused    when its process went on after its time was over (0: it did not stand still then)
    ended_all  its process was ended since it went on
    spent      it failed, which costs an attempt
    died       how its process ended before that told its end (empty: it was told)
    locked     seconds for which it keeps the interpreter lock of its process
    """

    id: str
    n: int
    fence: int
    where: str
    start: float
    end: float | None = None
    how: str = ""
    frozen: bool = False
    overtaken: str = ""
    attempt: int = 1
    froze: float = 0.0
    thawed: float = 0.0
    excused: float = 0.0
    told: float = 0.0
    timed_out: bool = False
    ended_all: bool = False
    spent: bool = False
    died: str = ""
    locked: float = 0.0


@dataclass(slots=True)
class WorkloadStory:
    """The story of one workload."""

    n: int
    executions: list[Execution] = field(default_factory=list)
    fence: int = 0
    not_before: float = 0.0  # true time, if all wall clocks agree
    known: int = 0  # failures that the stores knew of when the last one ended


class KnownTrees(Protocol):
    """Trees of jobs, as the world knows them."""

    def runs(self, id: str, job: str, step: Any, n: int) -> Any:
        """The item that runs as this workload, with this payload."""

    def unfit(self, id: str) -> bool:
        """Whether a workload ran well, and no item can be made of its result."""

    def reads(self, run: Execution, after: str) -> None:
        """Has the results after a place read for a run that gathers them."""

    def page(self, run: Execution, after: str) -> ResultPage | None:
        """The results that a run waits for; None: they are not there yet. Raises Conflict if it gets none."""

    def gathered(self, id: str, results: list[Any]) -> None:
        """Checks the results that a run has read."""


class Journal:
    """The world's record. Those in `begins` are told of each run, before it is known, those in `ends` when it is
    over, those in `goes_on` when its process thaws. `deadlines` are true times by
    item, after which it may not start, if all wall clocks agree; `cancelled`: each id that was said to be or to
    become so → the fence of its last hand-out by then. `violations` are what must not be; `jumped` sums the
    jumps of wall clocks: so much may a due time mean another moment to one host than to the other. `was` says of an
    id which dead letter it was redriven from (empty: none): what it does goes on where that one died. `in_line`: ids
    of items that died and stood in their stream's line once more. `trees`: what runs of them asks for itself there;
    `added`: whether what a run adds to one was answered."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.stories: dict[str, WorkloadStory] = {}
        self.violations: list[str] = []
        self.jumped = 0.0
        self.deadlines: dict[int, float] = {}
        self.cancelled: dict[str, int] = {}
        self.live: dict[str, Execution] = {}
        self.begins: list[Callable[[Execution], None]] = []
        self.ends: list[Callable[[Execution], None]] = []
        self.goes_on: list[Callable[[Execution], None]] = []
        self.failures: Callable[[str], int] | None = None  # of a workload, as the stores know it; None: nobody can say
        self.broken_until = 0.0  # true time until which every function fails
        self.was: Callable[[str], str] = lambda id: ""
        self.in_line: set[str] = set()
        self.trees: KnownTrees | None = None
        self.items_of: dict[str, dict[tuple[str, int], float]] = {}  # by process, with the time at which it got them
        self.added: Callable[[Execution], bool] = lambda run: True
        self.is_over: Callable[[str], bool] = lambda id: False  # as the stores know it
        self.misfits: dict[str, set[str]] = {}  # by workload: the workers whose version did not take it

    @property
    def now(self) -> float:
        """True time."""
        return self._world.now

    def wrong(self, what: str) -> None:
        """Records a violation: something that must not be."""
        self._world.say("!", what)
        self.violations.append(f"{self._world.now:.6f} {what}")

    def given(self, where: str, items: Iterable[tuple[str, int]]) -> None:
        """Notes the items, each an id with its fence, that a process was given; they need not have run."""
        self.items_of.setdefault(where, {}).update(dict.fromkeys(items, self._world.now))

    def refused(self, id: str, where: str) -> None:
        """Records that the version of a process did not take a workload's arguments, and checks that it was not asked
        before."""
        self._world.say(where, f"refuses {id}")
        self._world.count("misfits")
        worker, known = where.partition("/")[0], self.misfits.setdefault(id, set())
        if worker in known:
            self.wrong(f"version: {id} is refused by {worker}, which had refused it before")
        known.add(worker)

    def begin(self, id: str, n: int, fence: int, where: str, attempt: int = 1) -> Execution:
        """Records a run that begins, and checks that it is alone, under a fence above all before it, and not early."""
        now = self._world.now
        story = self.stories.setdefault(id, WorkloadStory(n))
        run = Execution(id, n, fence, where, now, attempt=attempt)
        other = self.live.get(id)
        if other is not None:
            text = f"two at once: {id} starts in {where} while it runs in {other.where} since {other.start:.3f}"
            if other.frozen:
                other.overtaken = text
            else:
                self.wrong(text)
        if fence <= story.fence:
            self.wrong(f"fence: {id} starts under {fence} after {story.fence}")
        allowed = story.not_before - self.jumped
        if now < allowed - ROUNDING and self.heard(id):
            self.wrong(f"early: {id} starts {allowed - now:.3f} s before its time")
        redriven = id in self.in_line or self.was(id)  # a redrive has no deadline
        if now > self.deadlines.get(n, now) + self.jumped + ROUNDING and not redriven:
            self.wrong(f"late: {id} starts {now - self.deadlines[n]:.3f} s after its deadline")
        for told in self.begins:
            told(run)
        story.fence = max(story.fence, fence)
        story.executions.append(run)
        self.live[id] = run
        self._world.say(where, f"runs {id} (item {n}, fence {fence}, run {len(story.executions)})")
        return run

    def ran(self, id: str) -> int:
        """Number of runs of a workload, and of the letters that it was."""
        runs = 0
        while id:
            story = self.stories.get(id)
            runs += 0 if story is None else len(story.executions)
            id = self.was(id)
        return runs

    def runs_of(self, n: int) -> int:
        """Number of runs of an item, under all its ids."""
        return sum(len(story.executions) for story in self.stories.values() if story.n == n)

    def over(self, n: int) -> bool:
        """Whether an item was done, or buried, at some time."""
        ids = [id for id, story in self.stories.items() if story.n == n]
        return any(run.how == "ok" for id in ids for run in self.stories[id].executions) or any(map(self.is_over, ids))

    def heard(self, id: str) -> bool:
        """Whether the stores know how the last run ended. An end that nobody heard was lost: the workload may run again
        at once."""
        return self.failures is None or self.failures(id) > self.stories[id].known

    def thawed(self, run: Execution) -> None:
        """Records that the process of a run goes on after a freeze."""
        run.frozen, run.thawed = False, self._world.now
        if run.overtaken:
            self.wrong(f"{run.overtaken}, whose process was frozen and goes on")
        for told in self.goes_on:
            told(run)

    def end(self, run: Execution, how: str, at: float | None = None) -> None:
        """Records the end of a run, `at` a time that may have passed: for a frozen process, when it last did
        anything."""
        if run.end is not None:
            return
        run.end = self._world.now if at is None else at
        run.how = how
        if self.live.get(run.id) is run:
            del self.live[run.id]
        self._world.say(run.where, f"ends {run.id}: {how}")
        for told in self.ends:
            told(run)

    def expect_pause(self, id: str, n: int, until: float) -> None:
        """Forbids a workload to start again before a true time."""
        story = self.stories.setdefault(id, WorkloadStory(n))
        story.not_before = until
        story.known = 0 if self.failures is None else self.failures(id)
