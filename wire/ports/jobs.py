"""The port for jobs: trees of items that feed each other, made, filled, sealed, followed and ended."""

from __future__ import annotations

from typing import Protocol

from ...model.job import JobHolder, JobItem, ResultPage, TreePage, TreeSpec, TreeStatus


class JobPort(Protocol):
    """Jobs. What is asked for may be asked again: it is done once. All raise InvalidRequest for what is not there, or
    where the queue's engine keeps no jobs."""

    async def create_job(self, tree: TreeSpec) -> TreeStatus:
        """Makes a tree, which is fixed from then on."""

    async def add_to_job(
        self, tree: str, job: str, token: str, items: list[JobItem], holder: JobHolder | None = None
    ) -> int:
        """Adds items to a job of a tree (without a name: to its first one), all or none; how many. `holder`: a run of
        an item adds them to its own tree, whose id it need not give, and without a name to its own job."""

    async def seal_job(self, tree: str, job: str = "") -> TreeStatus:
        """From now on nothing can be added to it."""

    async def job(self, tree: str, wait: float = 0.0, item: str = "") -> TreeStatus:
        """One tree, by its id or by the workload of one of its items, after its end or after so many seconds."""

    async def jobs(self, state: str = "", after: str = "", limit: int = 100) -> list[TreeStatus]:
        """Trees, the newest first, at most 200; of a state unless it is empty, and behind the one of an id. It is what
        clients of the version before ask."""

    async def job_results(self, tree: str, after: str = "", limit: int = 1000) -> ResultPage:
        """What became of the items of final jobs, in the order in which they were made, at most 1000 at once."""

    async def change_job(self, tree: str, what: str, who: str = "", why: str = "") -> str:
        """`cancel`, `pause`, `resume` or `delete`. Answers `done`, or `over`: there was nothing to be done."""

    async def retry_job(self, tree: str, id: str, who: str = "", why: str = "") -> TreeStatus:
        """Another tree, of this id, of the failed items of one that is over; asked again, it goes on where it was, with
        another id too while the tree that was begun is open."""


class JobPagePort(Protocol):
    """Pages of jobs, and of what the run of an item gathers."""

    async def job_page(self, state: str = "", after: str = "", limit: int = 100) -> TreePage:
        """As `JobPort.jobs`. Whoever may not read all of them is shown as many as are among those that one call looks
        at, maybe none, and where to go on."""

    async def gathered(self, holder: JobHolder, after: str = "", limit: int = 1000) -> ResultPage:
        """What became of the items of the jobs whose results a run's item gathers, in the order in which they were
        made, at most 1000 at once."""


class JobAuditPort(Protocol):
    """The audit of a tree of jobs: whether its rows agree."""

    async def audit_job(self, tree: str) -> list[str]:
        """What of its rows does not agree; nothing, unless somebody else changed them."""
