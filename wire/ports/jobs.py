"""The port for jobs: trees of items that feed each other, made, filled, sealed, followed and ended."""

from __future__ import annotations

from typing import Protocol

from ...model.job import JobHolder, JobItem, ResultPage, TreePage, TreeSpec, TreeStatus


class JobPort(Protocol):
    """Calls about jobs. A call that is repeated is carried out once. Every method raises InvalidRequest for a tree or
    job that does not exist, and where the queue's engine keeps no jobs."""

    async def create_job(self, tree: TreeSpec) -> TreeStatus:
        """Makes a tree, which is fixed from then on."""

    async def add_to_job(
        self, tree: str, job: str, token: str, items: list[JobItem], holder: JobHolder | None = None
    ) -> int:
        """Adds items to a job of a tree (an empty name: its first job), all or none; returns how many. `holder`: the
        run of an item that adds them to its own tree, whose id it need not give; an empty name is then its own job."""

    async def seal_job(self, tree: str, job: str = "") -> TreeStatus:
        """Says that nothing more is added to a job; an empty name: the first job of the tree."""

    async def job(self, tree: str, wait: float = 0.0, item: str = "") -> TreeStatus:
        """One tree, by its id or by the workload of one of its items; answered at its end or after `wait` seconds."""

    async def jobs(self, state: str = "", after: str = "", limit: int = 100) -> list[TreeStatus]:
        """Trees, the newest first, at most 200: of this state (empty: of any), and after the tree of the id `after`.
        Called by clients of the version before."""

    async def job_results(self, tree: str, after: str = "", limit: int = 1000) -> ResultPage:
        """A page of the ends of items of final jobs, in the order in which they were made, at most 1000."""

    async def change_job(self, tree: str, what: str, who: str = "", why: str = "") -> str:
        """Changes a tree: `what` is `cancel`, `pause`, `resume` or `delete`. Returns `done`, or `over`: there was
        nothing to do."""

    async def retry_job(self, tree: str, id: str, who: str = "", why: str = "") -> TreeStatus:
        """Makes another tree, with this id, of the failed items of one that is over. A repeated call goes on where the
        first one was, also with another id while the tree that was begun is open."""


class JobPagePort(Protocol):
    """Calls for pages of jobs, and for pages of the results that the run of an item gathers."""

    async def job_page(self, state: str = "", after: str = "", limit: int = 100) -> TreePage:
        """A page of trees, like `JobPort.jobs`. A caller that may not read all of them gets those that it may read
        among the trees that one call looks at, maybe none, and where to go on."""

    async def gathered(self, holder: JobHolder, after: str = "", limit: int = 1000) -> ResultPage:
        """A page of the ends of the items that the item of a run gathers, in the order in which they were made, at most
        1000."""


class JobAuditPort(Protocol):
    """The call for the audit of a tree of jobs: whether its rows agree."""

    async def audit_job(self, tree: str) -> list[str]:
        """Contradictions among the rows of a tree; none, unless somebody else changed them."""
