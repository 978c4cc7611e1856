"""Advances of jobs on PostgreSQL: the due steps of each, a bounded number at a time. The rules decide each step, and it
is written only if the job is still as it was read. Any number of processes may advance; a step that two of them take is
done once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from ....model.errors import TailraceError
from ...postgres.arrays import blobs, numbers, texts, truths
from ..rules.ending import JobStands, JobStep, ends_tree, next_step
from ..rules.feeding import NoList, TooLarge, elements, payload_of
from ..rules.refusals import why_ends
from ..rules.step_bounds import EXPANDED, SOME
from . import statements as call

#: Most jobs of one look.
JOBS = 64
#: Most bytes of lists that are expanded in one step, after the first list.
READ = 1 << 20

_LOG = logging.getLogger("tailrace.stores")


class Ground(Protocol):
    """The schema of a queue: statements that write, and statements that only read."""

    async def rows(self, statement: str, arguments: Sequence[Any] = (), about: str = "") -> list[tuple[Any, ...]]: ...

    async def read(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]: ...


class FoldedJob(NamedTuple):
    """A job with all counts until now, as `job_fold` returns it. `upto`: other jobs may need a look after this one; 0:
    none."""

    job: int
    tree: int
    name: str
    prefix: bytes
    suffix: bytes
    most: int
    gather: bool
    each: bool
    sealed: bool
    pending: int
    looked: int
    complete: bool
    folds: int
    parents: int
    open_parents: int
    policy: str
    most_failed: int
    tree_failed: int
    ending: str
    paused: bool
    upto: int

    @property
    def stands(self) -> JobStands:
        """The job in the form that the rule takes."""
        return JobStands(
            self.sealed,
            self.pending,
            self.complete,
            self.parents > 0,
            self.open_parents,
            self.gather,
            bool(self.ending),
        )


class Advanced(NamedTuple):
    """The outcome of a step: how many jobs may need another one, and whether items became due."""

    left: int
    woken: bool


class _ListedResult(NamedTuple):
    """A list that is being expanded, from one of its elements on."""

    origin: int
    begin: int
    elements: Sequence[bytes]


class _CutResult(NamedTuple):
    """A list of which this process expanded a part, up to one of its elements."""

    job: int
    origin: int
    end: int
    elements: Sequence[bytes]


class PostgresAdvance:
    """The advances of one process. `at`: µs to use instead of the server's clock, or None. Each step goes on after the
    jobs of the step before, so that all have their turns. A job whose step fails is added to `failed`, and gets no
    other step here; nor do the jobs in `rest`."""

    def __init__(self, ground: Ground, at: int | None = None, rest: Collection[int] = ()) -> None:
        self._ground = ground
        self.at = at
        self.failed: set[int] = set()
        self._rest = rest
        self._cut: _CutResult | None = None
        self._behind = 0  # the last job that this round looked at
        self._left = 0  # jobs of this round that may need another step

    async def step(self) -> Advanced:
        """Does one step of some jobs. Returns how many jobs of this round may need another one, and whether items
        became due."""
        found = await self._ground.rows(call.FOLD, (JOBS, self._behind), "a look at jobs")
        decided: list[tuple[FoldedJob, str]] = []
        woken, rests = False, 0
        for row in map(FoldedJob._make, found):
            if row.job in self._rest or row.job in self.failed:
                rests += 1
                continue
            try:
                step, wakes = await self._step(row)
            except TailraceError as error:
                await self._ground.read(call.NOW, (self.at,), "the time")  # raises if no other step could succeed
                _LOG.warning(
                    "job %r (number %d of the tree number %d): a step failed, and is tried again later: %s",
                    row.name,
                    row.job,
                    row.tree,
                    error,
                )
                self.failed.add(row.job)
                rests += 1
                continue
            woken |= wakes
            if step:
                decided.append((row, step))
        if decided:
            await self._ground.rows(
                call.DECIDE,
                (
                    self.at,
                    numbers(row.job for row, _ in decided),
                    numbers(row.folds for row, _ in decided),
                    texts([step for _, step in decided]),
                ),
                "a decision about jobs",
            )
            woken |= any(step == "complete" for _, step in decided)  # its callback may be due
        left = self._left + sum(step != "nothing" for _, step in decided)
        left += len(found) - rests - len(decided)
        self._behind = FoldedJob._make(found[0]).upto if found else 0
        self._left = left if self._behind else 0
        return Advanced(left + (self._behind > 0), woken)

    async def _step(self, row: FoldedJob) -> tuple[str, bool]:
        """Returns the word to be written about a job, or "" if a step was done here; and whether items became due."""
        if row.complete:
            return "nothing", False
        if not row.ending and ends_tree(row.policy, row.most_failed, row.tree_failed):
            await self._end(row, why_ends(row.policy, row.tree_failed, row.most_failed))
            return "", False
        if await self._some_items(row):
            return "", True
        step = next_step(row.stands)
        if step is JobStep.GATHER_AND_SEAL:
            await self._ground.rows(call.GATHER, (self.at, row.job, row.folds), "a gathering")
            return "", True
        return {JobStep.SEAL: "seal", JobStep.COMPLETE: "complete"}.get(step, "nothing"), False

    async def _some_items(self, row: FoldedJob) -> bool:
        """Cancels, makes or wakes some items of a job. Returns True if there may be more."""
        if row.ending:  # the item after a cancelled one of its key may be due
            return row.pending > 0 and await self._some(call.CANCEL_SOME, row) > 0
        if row.each and row.pending and await self._expand(row):
            return True
        return row.looked >= 0 and not row.paused and await self._some(call.WAKE_SOME, row) > 0

    async def _some(self, statement: str, row: FoldedJob) -> int:
        [(count,)] = await self._ground.rows(statement, (self.at, row.job, SOME), "some items of a job")
        return int(count)

    async def _end(self, row: FoldedJob, why: str) -> None:
        await self._ground.rows(call.END_TREE, (row.tree, "failed", why), "the end of a job")

    async def _expand(self, row: FoldedJob) -> bool:
        """Makes some items of lists that are expanded. Returns True if there were any."""
        found = await self._results(row)
        if not found:
            return False
        apart: list[tuple[int, int, int, bool]] = []
        made: list[tuple[int, int, bytes]] = []
        try:
            for origin, begin, all_ in found:
                some = all_[begin : begin + EXPANDED - len(made)]
                made += [
                    (origin, begin + at, payload_of(row.prefix, each, row.suffix, row.most, row.name))
                    for at, each in enumerate(some)
                ]
                end = begin + len(some)
                apart.append((origin, begin, end, end >= len(all_)))
                if len(made) >= EXPANDED:
                    break
        except TooLarge as error:  # the server took it for a list whose elements fit
            await self._end(row, str(error))
            return True
        columns = (
            numbers(each[0] for each in apart),
            numbers(each[1] for each in apart),
            numbers(each[2] for each in apart),
            truths(each[3] for each in apart),
            numbers(each[0] for each in made),
            numbers(each[1] for each in made),
            blobs([each[2] for each in made]),
        )
        [(count,)] = await self._ground.rows(call.EXPAND, (self.at, row.job, *columns), "an expansion")
        origin, _, end, over = apart[-1]
        ours = count >= 0 and not over
        self._cut = _CutResult(row.job, origin, end, found[len(apart) - 1].elements) if ours else None
        return True

    async def _results(self, row: FoldedJob) -> list[_ListedResult]:
        """The next lists to expand; a list that is only partly expanded is read once for all of its steps."""
        cut = self._cut
        if cut is not None and cut.job == row.job:
            return [_ListedResult(cut.origin, cut.end, cut.elements)]
        found = await self._ground.read(call.APART, (row.job, EXPANDED, READ), "what is taken apart")
        try:
            return [_ListedResult(origin, begin, elements(bytes(result), row.name)) for origin, begin, result in found]
        except NoList as error:  # the server took it for one
            await self._end(row, str(error))
            return []
