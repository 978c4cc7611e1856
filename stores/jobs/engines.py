"""The engines of jobs: jobs are stored where the queue is; beside a queue that cannot hold them they are refused, with
advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol, runtime_checkable

from ...model.errors import InvalidRequest
from ...model.job import ItemRedrive, JobHolder, JobItem, ResultPage, TreeRetry, TreeSpec, TreeStatus
from ..config import StoresConfig
from ..queue.counts import Held
from ..queue.intake import Callback
from ..queue.queue import Queue
from ..queue.sqlite.queue import SqliteQueue
from .jobs import Feeding, Jobs
from .sqlite.jobs import SqliteJobs


class OpenJobs(Jobs, Protocol):
    """Jobs as their owner has them."""

    async def sweep(self) -> int:
        """Cancels trees that are open for too long, does due steps of jobs, and removes some of the trees that are past
        the retention. Returns 0 when nothing is left to do."""


@runtime_checkable
class AdvancingJobs(Protocol):
    """Jobs whose owner must run their advances (the next due steps), because no settlement does them."""

    async def run(self) -> None:
        """Runs the advances for as long as the jobs are open."""


class NoJobs:
    """A Jobs beside a queue whose engine has none: refuses every change, and shows nothing."""

    def __init__(self, engine: str) -> None:
        self._engine = engine

    def _refuse(self) -> NoReturn:
        raise InvalidRequest(
            f"a queue on {self._engine} keeps no jobs: they need the queue on SQLite or PostgreSQL "
            "(`queue: {engine: postgres}` in stores.yaml); without one, submit each workload by itself"
        )

    async def create(self, tree: TreeSpec, feedings: Sequence[Feeding], done: Callback | None = None) -> bool:
        self._refuse()

    async def add(
        self, tree: str, job: str, token: str, items: Sequence[JobItem], holder: JobHolder | None = None
    ) -> int:
        self._refuse()

    async def seal(self, tree: str, job: str) -> bool:
        self._refuse()

    async def show(self, tree: str, item: str = "") -> TreeStatus | None:
        return None

    async def still_open(self, trees: Sequence[str]) -> list[str]:
        return []

    async def held(self, what: str) -> Held:
        return Held(0, 0, {})

    async def trees(self, state: str, after: str, limit: int) -> list[TreeStatus]:
        return []

    async def results(self, tree: str, after: str, limit: int, max_bytes: int) -> ResultPage:
        self._refuse()

    async def change(self, tree: str, what: str, why: str) -> str:
        self._refuse()

    async def hold(self, tree: str, right: str, seen: str | None) -> str:
        self._refuse()

    async def retry(self, tree: str, id: str, who: str) -> TreeRetry:
        self._refuse()

    async def gathered(self, holder: JobHolder, after: str, limit: int, max_bytes: int) -> ResultPage:
        self._refuse()

    async def redrive(self, workloads: Sequence[str]) -> list[ItemRedrive]:
        return [ItemRedrive()] * len(workloads)

    async def audit(self, tree: str) -> list[str]:
        self._refuse()

    async def sweep(self) -> int:
        return 0


def jobs_beside(queue: Queue, config: StoresConfig) -> OpenJobs:
    """Returns the jobs of a queue."""
    if isinstance(queue, SqliteQueue):
        return SqliteJobs(queue, config)
    if config.queue["engine"] == "postgres":  # its client is installed then
        from ..queue.postgres.queue import PostgresQueue
        from .postgres.jobs import PostgresJobs

        assert isinstance(queue, PostgresQueue)
        return PostgresJobs(queue, config)
    return NoJobs({"redis": "Redis"}.get(config.queue["engine"], config.queue["engine"]))
