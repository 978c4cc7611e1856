"""The desk for jobs: checks trees against the registered functions, and items like any submission."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..model.errors import Conflict, InvalidPayload, InvalidRequest, Overloaded, UserError
from ..model.job import OVER, JobHolder, JobItem, JobSpec, ResultPage, TreePage, TreeSpec, TreeState, TreeStatus
from ..model.name import EXPECTED, NAME_LENGTH, is_name
from ..model.priority import DEFAULT_PRIORITY
from ..model.reference import BY_REFERENCE
from ..model.token_calls import need_of
from ..model.workload import Kind
from ..stores.jobs.jobs import Feeding, Jobs
from ..stores.jobs.rules.feeding import around
from ..stores.jobs.rules.refusals import HOLDS, nameless
from ..stores.jobs.rules.tree import check
from ..stores.queue.counts import Held
from ..wire.callers import rights_of_caller
from ..wire.stores import ANSWER_BYTES
from .config import GatewayConfig
from .known_functions import KnownFunctions
from .on_done import OnDone
from .polling import look_pause
from .rules.highest_priority import HighestPriorities
from .rules.job_arguments import argument_for
from .rules.lifting import noted, too_narrow
from .submission import rank_of, too_urgent
from .tenant_room import KEPT_BYTES, OPEN_JOBS, TenantRoom
from .waits import SharedWaits

#: Most trees, and most results, of one answer.
MOST_TREES, MOST_RESULTS = 200, 1000
#: Jobs whose functions are remembered; forgotten all at once when there are more.
KEPT = 10_000
#: Tries of a pause or a resumption, where others come between.
TRIES = 5

_LOG = logging.getLogger("tailrace.gateway")


class JobDesk:
    """Answers calls about jobs (a JobPort, JobPagePort and JobAuditPort); without a store of jobs it refuses."""

    def __init__(
        self,
        config: GatewayConfig,
        jobs: Jobs | None,
        functions: KnownFunctions,
        highest: HighestPriorities,
        clock: Clock,
        duties: Duties,
        room: TenantRoom | None = None,
    ) -> None:
        self._config = config
        self._jobs = jobs
        self._functions = functions
        self._highest = highest
        self._on_done = OnDone(config, functions, highest)
        self._clock = clock
        self._room = room
        self.rooms = [
            TenantRoom(name, partial(self._held, what), clock, duties)
            for name, what in ((OPEN_JOBS, "open"), (KEPT_BYTES, "kept"))
        ]
        self._function_of: dict[tuple[str, str], tuple[str, str, str]] = {}  # with its tenant, and its tree's
        self.waits = SharedWaits[None]("jobs", config.waiting_results, self._look, duties)

    def _store(self) -> Jobs:
        if self._jobs is None:
            raise InvalidRequest("this gateway has no store of jobs")
        return self._jobs

    async def create_job(self, tree: TreeSpec) -> TreeStatus:
        """Makes a tree. Raises InvalidRequest or UnknownFunction for one that its functions cannot run."""
        store = self._store()
        check(tree)
        feedings = [self._feeding(job, tree) for job in tree.jobs]
        done = None
        if tree.on_done:
            first, tenant = tree.jobs[0].priority, tree.jobs[0].tenant
            done = self._on_done.callback(tree.on_done, int(DEFAULT_PRIORITY) if first is None else first, tenant)
        await self._take_place(tree.id, tree.jobs[0].tenant)
        new = await store.create(tree, feedings, done)
        if new:
            _LOG.info("%s made the job %s (%s)", tree.created_by or "somebody", tree.id, tree.type)
        return await self._known(tree.id)

    async def _take_place(self, tree: str, tenant: str) -> None:
        """Takes a place among open trees. Raises Overloaded where a tenant has none left, unless the tree has one."""
        try:
            self.rooms[0].take({tenant: 1})
        except Overloaded:
            if await self._store().show(tree) is None:
                raise

    async def _held(self, what: str) -> Held:
        return Held(0, 0, {}) if self._jobs is None else await self._jobs.held(what)

    def _feeding(self, job: JobSpec, tree: TreeSpec) -> Feeding:
        spec = self._functions.check(job.function)
        for what, text in (("collection", job.collection), ("tenant", job.tenant)):
            if text and not is_name(text):
                raise InvalidRequest(f"the {what} of job {job.name!r} is {text[:NAME_LENGTH]!r}: {EXPECTED}")
        rank = rank_of(int(DEFAULT_PRIORITY) if job.priority is None else job.priority)
        highest = self._highest.of(spec.name, job.tenant)
        if rank < highest:
            if job.priority is not None:
                raise InvalidRequest(too_urgent(rank, highest, spec.name, job.tenant))
            rank = highest
        followed = next((other.name for other in tree.jobs if job.name in other.parents), None)
        if followed is not None and not spec.results:
            raise InvalidRequest(
                f"job {followed!r} comes after {job.name!r}, whose function {spec.name!r} keeps no results: "
                "declare it with results=True"
            )
        prefix, suffix = b"", b""
        if job.parents:
            prefix, suffix = around(argument_for(f"job {job.name!r}", job.argument, spec))
        kind = Kind(spec.name, rank, job.collection, job.tenant)
        return Feeding(kind, prefix, suffix, self._config.max_payload)

    async def add_to_job(
        self, tree: str, job: str, token: str, items: list[JobItem], holder: JobHolder | None = None
    ) -> int:
        """Adds items, each checked against the job's function. A `holder` adds to the job of its own item by
        default."""
        store = self._store()
        if len(items) > self._config.max_batch:
            raise InvalidRequest(
                f"{len(items)} items in one request: at most {self._config.max_batch} are taken; send several"
            )
        if not is_name(token):
            raise InvalidRequest("token: expected a name of this call, drawn at random, so that it is known again")
        if holder is not None and not (tree and job):
            own = await self._known("", holder.workload)
            tree, job = tree or own.id, job or own.job_of_item
        function, tenant, owner = await self._function(tree, job)
        spec = self._functions.check(function)
        most = self._config.max_payload
        checked = self._functions.checker(spec) if spec.arguments else None
        for index, item in enumerate(items):
            try:
                if len(item.payload) > most:
                    raise InvalidPayload(
                        f"{spec.name}: the payload has {len(item.payload)} bytes, at most {most} are taken: "
                        f"{BY_REFERENCE}"
                    )
                if len(item.key) > NAME_LENGTH:
                    raise InvalidRequest(f"key has {len(item.key)} characters: at most {NAME_LENGTH} are taken")
                if checked is not None:
                    checked(item.payload)
            except UserError as error:
                raise type(error)(f"item {index} of {len(items)}: {error}; none was added") from None
            if index % 250 == 249:
                await asyncio.sleep(0)
        if self._room is not None:
            self._room.take({tenant: len(items)})
        if items:
            self.rooms[1].take({owner: 1})  # of bytes: what the items leave behind nobody knows yet
        return await store.add(tree, job, token, items, holder)

    async def _function(self, tree: str, job: str) -> tuple[str, str, str]:
        """The function and the tenant of a job, and the tenant of its tree. Raises InvalidRequest for an unknown
        job."""
        found = self._function_of.get((tree, job))
        if found is None:
            status = await self._known(tree)
            named = [each for each in status.jobs if each.name == job or not job]
            if not named:
                there = ", ".join(each.name for each in status.jobs[:20])
                raise nameless(tree, job, there)
            if len(self._function_of) >= KEPT:
                self._function_of.clear()
            found = (named[0].function, named[0].tenant, status.jobs[0].tenant)
            self._function_of[tree, job] = found
        return found

    async def seal_job(self, tree: str, job: str = "") -> TreeStatus:
        """Seals a job. Harmless when it is sealed."""
        await self._store().seal(tree, job)
        return await self._known(tree)

    async def job(self, tree: str, wait: float = 0.0, item: str = "") -> TreeStatus:
        """The status of a tree, at its end or after `wait` seconds."""
        end = self._clock.monotonic() + wait
        found = await self._known(tree, item)
        left = end - self._clock.monotonic()
        if found.state in OVER or left <= 0:
            return found
        with contextlib.suppress(TimeoutError):
            await self.waits.over(found.id, left)
        return await self._known(tree, item)

    async def _look(self) -> None:
        """Looks at all jobs that are waited for."""
        while True:
            self.waits.came.clear()
            if not self.waits.ids:
                await self.waits.came.wait()
            await asyncio.sleep(look_pause(len(self.waits.ids)))
            asked = self.waits.ids
            try:
                left = set(await self._still_open(asked)) if asked else set()
            except Exception as error:
                self.waits.looked_in_vain(error)
                continue
            for tree in asked:
                if tree not in left:
                    self.waits.tell(tree, None)

    async def _still_open(self, trees: Sequence[str]) -> list[str]:
        try:
            return await self._store().still_open(trees)
        except InvalidRequest:  # a store server of the version before knows no such call
            shown = [await self._store().show(tree) for tree in trees]
            return [each.id for each in shown if each is not None and each.state not in OVER]

    async def _known(self, tree: str, item: str = "") -> TreeStatus:
        found = await self._store().show(tree, item)
        if found is None and item:
            raise InvalidRequest(f"the workload {item[:40]!r} is no item of a job that is known")
        if found is None:
            raise InvalidRequest(
                f"no job {tree[:100]!r} is known: it was never made here, or was forgotten; `tailrace job list` "
                "shows all"
            )
        return found

    async def jobs(self, state: str = "", after: str = "", limit: int = 100) -> list[TreeStatus]:
        """Trees, the newest first."""
        return await self._store().trees(state, after, min(limit, MOST_TREES) if limit > 0 else MOST_TREES)

    async def job_page(self, state: str = "", after: str = "", limit: int = 100) -> TreePage:
        """A page of trees, the newest first."""
        most = min(limit, MOST_TREES) if limit > 0 else MOST_TREES
        found = await self._store().trees(state, after, most)
        return TreePage(found, found[-1].id if len(found) == most else "")

    async def job_results(self, tree: str, after: str = "", limit: int = 1000) -> ResultPage:
        """A page of results of final jobs."""
        most = min(limit, MOST_RESULTS) if limit > 0 else MOST_RESULTS
        return await self._store().results(tree, after, most, ANSWER_BYTES)

    async def gathered(self, holder: JobHolder, after: str = "", limit: int = 1000) -> ResultPage:
        """A page of the results that the item of a run gathers."""
        most = min(limit, MOST_RESULTS) if limit > 0 else MOST_RESULTS
        return await self._store().gathered(holder, after, most, ANSWER_BYTES)

    async def change_job(self, tree: str, what: str, who: str = "", why: str = "") -> str:
        """Cancels, pauses, resumes or deletes a tree. Each is harmless when it is so already."""
        if len(who) > NAME_LENGTH:
            raise InvalidRequest(f"who has {len(who)} characters: at most {NAME_LENGTH} are taken")
        if what in HOLDS:
            word = await self._hold(tree, what)
        else:
            word = await self._store().change(tree, what, f"{what} asked for by {who or 'somebody'}")
        _LOG.info("%s asked to %s the job %s: %s", who or "somebody", what, tree, word)
        return word

    async def _hold(self, tree: str, what: str) -> str:
        """Pauses or resumes a tree. A pause notes the caller's right. Raises InvalidRequest where a wider one paused
        it."""
        rights = rights_of_caller()
        for _ in range(TRIES):
            found = await self._known(tree)
            paused = found.state == TreeState.PAUSED
            if paused and (fault := too_narrow(f"the pause of the job {tree!r}", found.paused_with, rights)):
                if what == "resume":
                    raise InvalidRequest(fault)
                return "done"  # it is paused, and stays so as long as whoever paused it says
            right = noted(rights, need_of("operate", found.jobs[0])) if what == "pause" else ""
            try:
                word = await self._store().hold(tree, right, found.paused_with)
            except InvalidRequest:  # a store server of the version before, which notes no right
                return await self._store().change(tree, what, "")
            if word != "moved":
                return word
        raise Conflict(f"the job {tree!r} is being changed by somebody else: try again")

    async def retry_job(self, tree: str, id: str, who: str = "", why: str = "") -> TreeStatus:
        """Makes another tree of the items that failed in one."""
        if len(who) > NAME_LENGTH:
            raise InvalidRequest(f"who has {len(who)} characters: at most {NAME_LENGTH} are taken")
        await self._take_place(id, (await self._known(tree)).jobs[0].tenant)
        made = await self._store().retry(tree, id, who)
        _LOG.info("%s made the job %s of %d failed items of %s", who or "somebody", made.id, made.items, tree)
        return replace(await self._known(made.id), anew=made.anew)

    async def audit_job(self, tree: str) -> list[str]:
        """Contradictions among the rows of a tree."""
        return await self._store().audit(tree)
