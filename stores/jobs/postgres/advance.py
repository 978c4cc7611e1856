"""Advances of jobs on PostgreSQL: what is due of each, a bounded step at a time, decided by the rules and written where
a job still stands as it was read. Any number of processes may do it; a step that two of them take is taken once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from ....model.errors import TailraceError
from ...postgres.arrays import blobs, numbers, texts, truths
from ..rules.ending import JobStands, JobStep, ends_tree, next_step
from ..rules.feeding import NoList, TooLarge, elements, payload_of
from ..rules.refusals import why_ends
from ..rules.steps import EXPANDED, SOME
from . import statements as call

#: Jobs of one look.
JOBS = 64
#: Bytes of results that are taken apart in one step, beyond the first one.
READ = 1 << 20

_LOG = logging.getLogger("tailrace.stores")


class Ground(Protocol):
    """The schema of a queue: statements that write, and those that only read."""

    async def rows(self, statement: str, arguments: Sequence[Any] = (), about: str = "") -> list[tuple[Any, ...]]: ...

    async def read(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]: ...


class FoldedJob(NamedTuple):
    """A job with all that was counted of it until now, as `job_fold` answers. `upto`: behind this one there may be
    others to look at; 0: there are none."""

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
        """As the rule reads it."""
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
    """The outcome of a step: how many jobs may need another one, and whether items are due now that were not."""

    left: int
    woken: bool


class _ListedResult(NamedTuple):
    """A result that is taken apart, from one of its elements on."""

    origin: int
    begin: int
    elements: Sequence[bytes]


class _CutResult(NamedTuple):
    """A result of which this process made items until one of its elements."""

    job: int
    origin: int
    end: int
    elements: Sequence[bytes]


class PostgresAdvance:
    """The advances of one process. `at` is µs instead of the server's clock, or None. Each step goes on behind the jobs
    of the one before, so that all have their turns. A job whose step fails is one of `failed` from then on, and has no
    other step here; nor have those of `rest`."""

    def __init__(self, ground: Ground, at: int | None = None, rest: Collection[int] = ()) -> None:
        self._ground = ground
        self.at = at
        self.failed: set[int] = set()
        self._rest = rest
        self._cut: _CutResult | None = None
        self._behind = 0  # the last job that this round has looked at
        self._left = 0  # jobs of this round that may need another step

    async def step(self) -> Advanced:
        """One step of some jobs: how many of this round may need another one, and whether items are due now that were
        not."""
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
                await self._ground.read(call.NOW, (self.at,), "the time")  # raises where no other step would go well
                _LOG.warning(
                    "a step of the job %r (number %d of the tree number %d) failed, and is tried again later: %s",
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
        """What is to be written of a job, or nothing where this took a step of it; whether items are due by it."""
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
        """Cancels, makes or wakes some items of a job. Whether there may be more."""
        if row.ending:  # what is behind a cancelled item of its key may be due
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
        """Makes some items of results that are taken apart. Whether there were any."""
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
        """The next results that are taken apart; one that was cut is read once for all of its steps."""
        cut = self._cut
        if cut is not None and cut.job == row.job:
            return [_ListedResult(cut.origin, cut.end, cut.elements)]
        found = await self._ground.read(call.APART, (row.job, EXPANDED, READ), "what is taken apart")
        try:
            return [_ListedResult(origin, begin, elements(bytes(result), row.name)) for origin, begin, result in found]
        except NoList as error:  # the server took it for one
            await self._end(row, str(error))
            return []
