"""Jobs on PostgreSQL: in the queue's own schema. Items end in the queue's settlements; the due steps of their jobs are
done after the commit, by the process that looks first."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Sequence
from typing import Any

import psycopg

from ....model.errors import Unavailable
from ....model.job import ItemRedrive, JobHolder, JobItem, ResultPage, TreeRetry, TreeSpec, TreeStatus
from ....model.name import is_name
from ....model.workload import Kind
from ...config import StoresConfig
from ...postgres.arrays import blobs, numbers, texts, truths
from ...postgres.server import explained
from ...queue.admission import check as check_items
from ...queue.counts import Held
from ...queue.ids import id_number, id_text
from ...queue.intake import Callback
from ...queue.postgres.capacity import COUNTED
from ...queue.postgres.queue import PostgresQueue
from ...queue.postgres.submit import NEW_IDS
from ...queue.queue import NewItem
from ..jobs import Feeding, JobEventRow
from ..rules import refusals, retrying
from ..rules.events import mask_of
from ..rules.feeding import NOTHING
from ..rules.overdue import CANCELLED, overdue
from ..rules.redriving import ItemStands, why_not
from ..rules.tree import check, defined, is_final
from . import queries
from . import statements as call
from .advance import PostgresAdvance

#: Seconds between two advances after ends in this process, and between two looks for steps that others left.
PAUSE, LOOK = 0.02, 1.0
#: Most steps that a call waits for that seals or changes a tree: enough for a few jobs; `run` does the rest.
SOON = 32
#: Seconds for which a job is left alone after a failed step, for example one that took too long.
REST = 30.0
#: Most rows that one step of the retention removes.
FORGOTTEN = 2000
_ANY_KIND = Kind("job")  # only the items' own fields are checked here; the job's kind was checked when it was made

_LOG = logging.getLogger("tailrace.stores")


class PostgresJobs:
    """The Jobs beside this queue. The owner has `run` going while it is open."""

    def __init__(self, queue: PostgresQueue, config: StoresConfig | None = None) -> None:
        self._queue = queue
        self._ground = queue.ground
        self._config = config or StoresConfig()
        self._kept, self._kept_at = 0, -math.inf  # bytes, and when they were read
        self._resting: dict[int, float] = {}  # jobs whose last step failed → until when they are left alone
        self._due = asyncio.Event()
        queue.on_ends(self._due.set)

    async def create(self, tree: TreeSpec, feedings: Sequence[Feeding], done: Callback | None = None) -> bool:
        check(tree)
        for job, feeding in zip(tree.jobs, feedings, strict=True):
            if len(feeding.prefix) + len(feeding.suffix) + len(NOTHING) > feeding.most:
                raise refusals.no_room(job.name, feeding.most)
        kinds = self._ground.kinds
        await kinds.add([each.kind for each in feedings] + ([] if done is None else [done.kind]))
        of_jobs = [kinds.numbers[each.kind] for each in feedings]
        place_of = {job.name: place for place, job in enumerate(tree.jobs)}
        edges = [(place_of[parent], place_of[job.name]) for job in tree.jobs for parent in job.parents]
        teller: tuple[int | None, int | None, bytes | None, bytes | None] = (None, None, None, None)
        if done is not None:
            number = kinds.numbers[done.kind]
            teller = (number, kinds.lane_of[number], done.prefix, done.suffix)
        arguments = (
            self._ground.time(),
            tree.id,
            tree.type,
            self._config.key_rule(tree.jobs[0].tenant, tree.key) if tree.key else "",
            tree.policy,
            tree.most_failed,
            tree.created_by,
            defined(tree),
            refusals.MOST_OPEN,
            texts([job.name for job in tree.jobs]),
            numbers(of_jobs),
            numbers(kinds.lane_of[kind] for kind in of_jobs),
            blobs([each.prefix for each in feedings]),
            blobs([each.suffix for each in feedings]),
            numbers(each.most for each in feedings),
            truths(is_final(job, tree.jobs) for job in tree.jobs),
            truths(job.gather for job in tree.jobs),
            truths(job.each for job in tree.jobs),
            numbers(parent for parent, _ in edges),
            numbers(child for _, child in edges),
            *teller,
            numbers(job.max_failures_per_item for job in tree.jobs),
            mask_of(tree.events),
        )
        for _ in range(NEW_IDS):
            with contextlib.suppress(psycopg.errors.UniqueViolation):  # somebody made it meanwhile
                [(outcome, told)] = await self._ground.write(call.CREATE, arguments, "a new job")
                break
        else:
            raise Unavailable(f"the job {tree.id!r} collides with new jobs of others each time: try again")
        if outcome == "other":
            raise refusals.another(tree.id)
        if outcome == "key":
            raise refusals.key_taken(tree, told)
        if outcome == "many":
            raise refusals.too_many(refusals.MOST_OPEN)
        return bool(outcome == "new")

    async def add(
        self, tree: str, job: str, token: str, items: Sequence[JobItem], holder: JobHolder | None = None
    ) -> int:
        refusals.check_names(tree, job, held=holder is not None)
        refusals.check_items(token, items)
        check_items([NewItem(_ANY_KIND, each.payload, key=each.key) for each in items], self._queue.max_payload)
        twice = refusals.twice(items)
        if twice is not None:
            raise refusals.known_item(tree, job, twice)
        await self._queue.room.look(len(items))
        columns = (
            blobs([each.payload for each in items]),
            texts([each.key for each in items]),
            texts([each.dedupe_key for each in items]),
            0 if holder is None else refusals.check_holder(holder),
            0 if holder is None else holder.fence,
            await self._is_full(),
        )
        for attempt in range(NEW_IDS):
            ids = self._queue.new_ids(len(items))
            try:
                found = await self._ground.write(
                    call.ADD, (self._ground.time(), tree, job, token, numbers(ids), *columns), "an addition to a job"
                )
            except psycopg.errors.UniqueViolation as error:  # somebody else just took an id, the token or a key
                if attempt == NEW_IDS - 1:
                    raise explained(error, self._ground.server.name, "an addition to a job") from None
                continue
            break
        [(outcome, told, count, lane, moment)] = found
        if holder is not None and outcome == "stale":
            raise refusals.stale(holder)
        if holder is not None and outcome == "elsewhere":
            raise refusals.elsewhere(holder, told, job)
        self._refuse(outcome, tree, job, told)
        self._queue.room.taken(count)
        self._queue.stored([lane], moment)
        return int(count)

    async def _is_full(self) -> bool:
        """Whether trees keep too many bytes, as of the last second."""
        if abs((now := self._ground.clock.monotonic()) - self._kept_at) > COUNTED:
            [(self._kept,)] = await self._ground.read(call.KEPT, (), "the size of jobs")
            self._kept_at = now
        return self._kept >= self._config.job_bytes

    def _refuse(self, outcome: str, tree: str, job: str, told: str) -> None:
        """Raises the error of an outcome that refuses."""
        if outcome == "unknown":
            raise refusals.unknown(tree)
        if outcome == "nameless":
            raise refusals.nameless(tree, job, told)
        if outcome in ("over", "ends"):
            raise refusals.over(tree, complete=outcome == "over")
        if outcome == "sealed":
            raise refusals.sealed(tree, job)
        if outcome == "full":
            raise refusals.full(self._kept, self._config.job_bytes)
        if outcome == "dedupe":
            raise refusals.known_item(tree, job, told)
        if outcome == "born":
            raise refusals.sealed_by_parents(tree, job)

    async def seal(self, tree: str, job: str) -> bool:
        refusals.check_names(tree, job)
        [(outcome, told)] = await self._ground.write(call.SEAL, (tree, job), "the seal of a job")
        if outcome == "again":
            return False
        if outcome != "sealed":
            self._refuse(outcome, tree, job, told)
        await self._advance_soon()
        return True

    async def show(self, tree: str, item: str = "") -> TreeStatus | None:
        return await queries.show(self._ground.read, tree, item) if is_name(tree) or id_number(item) >= 0 else None

    async def still_open(self, trees: Sequence[str]) -> list[str]:
        return await queries.still_open(self._ground.read, trees)

    async def held(self, what: str) -> Held:
        refusals.check_room(what)
        if what == "open":
            most = refusals.MOST_OPEN
            [(used,)] = await self._ground.read(call.OPEN, (), "the number of jobs")
        else:
            most = self._config.job_bytes
            await self._is_full()
            used = self._kept
        if used * 2 <= most or not any(kind.tenant for kind in [*self._ground.kinds.kinds.values()]):
            return Held(most, used, {})
        return Held(most, used, dict(await self._ground.read(call.HELD[what], (), "the room of tenants")))

    async def trees(self, state: str, after: str, limit: int) -> list[TreeStatus]:
        refusals.check_state(state)
        if after:
            refusals.check_names(after)
        return await queries.listing(self._ground.read, state, after, limit)

    async def results(self, tree: str, after: str, limit: int, max_bytes: int) -> ResultPage:
        refusals.check_names(tree)
        refusals.check_page(after)
        found = await queries.results(self._ground.read, tree, after, limit, max_bytes)
        if found is None:
            raise refusals.unknown(tree)
        return found

    async def change(self, tree: str, what: str, why: str) -> str:
        refusals.check_names(tree)
        refusals.check_change(what)
        if what in refusals.HOLDS:
            return await self.hold(tree, refusals.HOLDS[what], None)
        return await self._change(call.CHANGE, tree, what, why)

    async def hold(self, tree: str, right: str, seen: str | None) -> str:
        refusals.check_names(tree)
        return await self._change(call.HOLD, tree, right, seen)

    async def _change(self, statement: str, tree: str, *rest: str | None) -> str:
        [(word,)] = await self._ground.write(statement, (tree, *rest), "a change of a job")
        if word == "unknown":
            raise refusals.unknown(tree)
        await self._advance_soon()
        return str(word)

    async def retry(self, tree: str, id: str, who: str) -> TreeRetry:
        refusals.check_names(tree)
        refusals.check_id(id)
        outcome, count = "more", 0
        while outcome == "more":
            await self._queue.room.look(retrying.TAKEN)
            arguments = (self._ground.time(), tree, id, who, retrying.TAKEN, retrying.TAKEN_BYTES)
            [(outcome, count, id)] = await self._ground.write(call.RETRY, arguments, "another try of a job")
            if outcome == "unknown":
                raise refusals.unknown(tree)
            if outcome == "open":
                raise refusals.not_over(tree)
            if outcome == "none":
                raise refusals.none_failed(tree)
            if outcome == "other":
                raise refusals.another(id)
            self._queue.changed()
        await self._advance_soon()
        return TreeRetry(id, count, await queries.anew(self._ground.read, tree))

    async def redrive(self, workloads: Sequence[str]) -> list[ItemRedrive]:
        formers = [*dict.fromkeys(number for each in workloads if (number := id_number(each)) >= 0)]
        if not formers:
            return [ItemRedrive()] * len(workloads)
        await self._queue.room.look(len(formers))
        found: list[Any] = []
        for attempt in range(NEW_IDS):
            new = numbers(self._queue.new_ids(len(formers)))
            try:
                found = await self._ground.write(
                    call.REDRIVE, (self._ground.time(), numbers(formers), new), "a redrive of items of jobs"
                )
            except psycopg.errors.UniqueViolation as error:  # somebody else just took an id, or redrives the same items
                if attempt == NEW_IDS - 1:
                    raise explained(error, self._ground.server.name, "a redrive of items of jobs") from None
                continue
            break
        answers: dict[int, ItemRedrive] = {}
        lanes: list[int] = []
        for former, item, state, complete, ends, tree, lane, _ in found:
            why = "" if lane is not None or state is None else why_not(ItemStands(state, complete, ends), tree)
            answers[former] = ItemRedrive(refused=why) if why else ItemRedrive(id_text(item))
            lanes += [] if lane is None else [lane]
        if lanes:
            self._queue.room.taken(len(lanes))
            self._queue.stored(sorted(set(lanes)), found[0][-1])
        return [answers.get(id_number(each), ItemRedrive()) for each in workloads]

    async def gathered(self, holder: JobHolder, after: str, limit: int, max_bytes: int) -> ResultPage:
        refusals.check_page(after)
        item = refusals.check_holder(holder, refusals.reads_nothing)
        [(job,)] = await self._ground.read(call.GATHERED, (item, holder.fence), "results to gather")
        if job is None:
            raise refusals.gathers_no_more(holder)
        if not job:
            raise refusals.reads_nothing(holder)
        return await queries.gathered(self._ground.read, job, after, limit, max_bytes)

    async def audit(self, tree: str) -> list[str]:
        refusals.check_names(tree)
        found = await queries.audit(self._ground.read, tree)
        if found is None:
            raise refusals.unknown(tree)
        return found

    # Duties.

    async def advance(self, steps: int = 1000) -> bool:
        """Does due steps of all jobs, at most so many. Returns True if there may be more. A job whose step fails is
        left alone for a while, so that it takes no turns from others."""
        now = self._ground.clock.monotonic()
        self._resting = {job: until for job, until in self._resting.items() if until > now}
        ahead = PostgresAdvance(self._ground, self._ground.time(), frozenset(self._resting))
        for _ in range(steps):
            try:
                done = await ahead.step()
            except psycopg.errors.UniqueViolation:  # the server drew ids that are taken: it draws others
                continue
            self._resting |= dict.fromkeys(ahead.failed, now + REST)
            if done.woken:
                self._queue.changed()
            if not done.left:
                return False
        return True

    async def _advance_soon(self) -> None:
        if await self.advance(SOON):
            self._due.set()

    async def run(self) -> None:
        """Advances jobs soon after ends in this process, and now and then for steps that others left. Waits for a
        server that is away."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._due.wait()
            self._due.clear()
            try:
                if await self.advance():
                    self._due.set()
            except Unavailable as error:
                _LOG.info("%s; jobs go on later", error)
                await asyncio.sleep(LOOK)
            await asyncio.sleep(PAUSE)

    async def take_events(self, limit: int, seconds: float) -> list[JobEventRow]:
        arguments = (self._ground.time(), limit, int(seconds * 1e6))
        rows = await self._ground.rows(call.TAKE_EVENTS, arguments, "events of jobs")
        return sorted(JobEventRow(*row) for row in rows)

    async def forget_events(self, numbers_: Sequence[int]) -> None:
        await self._ground.write(call.FORGET_EVENTS, (numbers(numbers_),), "events of jobs")

    async def sweep(self) -> int:
        """Cancels trees that are open for too long, does due steps of jobs, and removes some of the trees that are past
        the retention. Returns 0 when nothing is left to do."""
        [(now,)] = await self._ground.read(call.NOW, (self._ground.time(),), "the time")
        trusted = self._queue.trusted.micros(now)
        arguments = (*overdue(trusted, self._config.job_max_age), CANCELLED)
        [(cancelled,)] = await self._ground.rows(call.CANCEL_OVERDUE, arguments, "jobs that are open for too long")
        left = await self.advance()
        before = trusted - int(self._config.job_retention * 1e6)
        [(gone,)] = await self._ground.rows(call.FORGET, (before, FORGOTTEN), "the removal of old jobs")
        return int(cancelled) + int(left) + int(gone)
