"""The engines of jobs: they are where the queue is, or are refused with what to use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol, runtime_checkable

from ...model.errors import InvalidRequest
from ...model.job import ItemRedrive, JobHolder, JobItem, ResultPage, TreeRetry, TreeSpec, TreeStatus
from ..config import StoresConfig
from ..queue.intake import Callback
from ..queue.queue import Queue
from ..queue.sqlite.queue import SqliteQueue
from .jobs import Feeding, Jobs
from .sqlite.jobs import SqliteJobs


class OpenJobs(Jobs, Protocol):
    """Jobs as their owner has them."""

    async def sweep(self) -> int:
        """Cancels what is open for too long, goes on with what is due, and forgets some of what is past the retention;
        0: there is no more to be done."""


@runtime_checkable
class AdvancingJobs(Protocol):
    """Jobs whose advances are a duty of their owner, since no settlement does them."""

    async def run(self) -> None:
        """Runs while they are open."""


class NoJobs:
    """A Jobs beside a queue whose engine keeps none: everything is refused, and there is nothing to be seen."""

    def __init__(self, engine: str) -> None:
        self._engine = engine

    def _refuse(self) -> NoReturn:
        raise InvalidRequest(
            f"a queue on {self._engine} keeps no jobs: they need the queue on SQLite or PostgreSQL "
            "(`queue: {{engine: postgres}}` in stores.yaml); without one, submit each workload by itself"
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

    async def trees(self, state: str, after: str, limit: int) -> list[TreeStatus]:
        return []

    async def results(self, tree: str, after: str, limit: int, max_bytes: int) -> ResultPage:
        self._refuse()

    async def change(self, tree: str, what: str, why: str) -> str:
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
    """The jobs of a queue."""
    if isinstance(queue, SqliteQueue):
        return SqliteJobs(queue, config)
    if config.queue["engine"] == "postgres":  # its client is installed then
        from ..queue.postgres.queue import PostgresQueue
        from .postgres.jobs import PostgresJobs

        assert isinstance(queue, PostgresQueue)
        return PostgresJobs(queue, config)
    return NoJobs({"redis": "Redis"}.get(config.queue["engine"], config.queue["engine"]))
