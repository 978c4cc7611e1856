"""Authorization of calls about jobs: the rights of a caller are checked against the functions, collections and tenants
of the tree's jobs. Callers without rights of their own (users of this machine, parts with a certificate) pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from ..model.job import JobHolder, JobItem, JobSpec, ResultPage, TreePage, TreeSpec, TreeStatus
from ..model.rights import Need
from ..model.token_calls import need_of
from ..wire.callers import RIGHTS, require
from ..wire.ports.jobs import JobAuditPort, JobPagePort, JobPort
from .authorization import creator, needs_of
from .job_desk import MOST_TREES
from .rules.callback import is_function


class AllOfJobs(JobPort, JobPagePort, JobAuditPort, Protocol):
    """All calls about jobs that a gateway answers."""


class GuardedJobs:
    """Checks the caller's rights to a call about jobs, then makes it (a JobPort, JobPagePort and JobAuditPort)."""

    def __init__(self, inner: AllOfJobs) -> None:
        self._inner = inner

    async def create_job(self, tree: TreeSpec) -> TreeStatus:
        """Needs `submit` for the functions of all jobs, and for the function in `on_done`."""
        told = [JobSpec("on_done", tree.on_done)] if is_function(tree.on_done) else []
        require(needs_of("submit", [*tree.jobs, *told]))
        return await self._inner.create_job(replace(tree, created_by=creator(tree.created_by)))

    async def add_to_job(
        self, tree: str, job: str, token: str, items: list[JobItem], holder: JobHolder | None = None
    ) -> int:
        """Needs `submit` for the job's function."""
        if RIGHTS.get() is not None:
            found = await self._inner.job(tree, item="" if holder is None else holder.workload)
            name = job or found.job_of_item or found.jobs[0].name
            require(needs_of("submit", [each for each in found.jobs if each.name == name]))
        return await self._inner.add_to_job(tree, job, token, items, holder)

    async def seal_job(self, tree: str, job: str = "") -> TreeStatus:
        """Needs `submit` for the first job."""
        await self._require("submit", tree, first=True)
        return await self._inner.seal_job(tree, job)

    async def job(self, tree: str, wait: float = 0.0, item: str = "") -> TreeStatus:
        """Needs `read` for the first job."""
        await self._require("read", tree, first=True, item=item)
        return await self._inner.job(tree, wait, item)

    async def jobs(self, state: str = "", after: str = "", limit: int = 100) -> list[TreeStatus]:
        """The trees of which the caller may read the first job, among the newest MOST_TREES of all; for callers of
        versions that know no pages."""
        if RIGHTS.get() is None:
            return await self._inner.jobs(state, after, limit)
        found = (await self.job_page(state, after, MOST_TREES)).trees
        return found[:limit] if limit > 0 else found

    async def job_page(self, state: str = "", after: str = "", limit: int = 100) -> TreePage:
        """The trees of which the caller may read the first job, of one page of all, and after which tree to go on:
        a call reads no more trees than it might show, however few of them are the caller's."""
        page = await self._inner.job_page(state, after, limit)
        if (granted := RIGHTS.get()) is None:
            return page
        return TreePage([each for each in page.trees if granted.may(need_of("read", each.jobs[0]))], page.after)

    async def job_results(self, tree: str, after: str = "", limit: int = 1000) -> ResultPage:
        """Needs `read` for all final jobs."""
        if RIGHTS.get() is not None:
            found = await self._inner.job(tree)
            require(needs_of("read", [each for each in found.jobs if each.final]))
        return await self._inner.job_results(tree, after, limit)

    async def gathered(self, holder: JobHolder, after: str = "", limit: int = 1000) -> ResultPage:
        """Needs `run` for the function of the item."""
        if RIGHTS.get() is not None:
            found = await self._inner.job("", item=holder.workload)
            require(needs_of("run", [each for each in found.jobs if each.name == found.job_of_item]))
        return await self._inner.gathered(holder, after, limit)

    async def change_job(self, tree: str, what: str, who: str = "", why: str = "") -> str:
        """Needs `operate` for all jobs."""
        await self._require("operate", tree)
        return await self._inner.change_job(tree, what, who, why)

    async def retry_job(self, tree: str, id: str, who: str = "", why: str = "") -> TreeStatus:
        """Needs `operate` for all jobs."""
        await self._require("operate", tree)
        return await self._inner.retry_job(tree, id, who, why)

    async def audit_job(self, tree: str) -> list[str]:
        """Needs `read` for the first job."""
        await self._require("read", tree, first=True)
        return await self._inner.audit_job(tree)

    async def _require(self, action: str, tree: str, *, first: bool = False, item: str = "") -> None:
        if RIGHTS.get() is not None:
            found = await self._inner.job(tree, item=item)
            needs: list[Need] = needs_of(action, found.jobs[:1] if first else found.jobs)
            require(needs)
