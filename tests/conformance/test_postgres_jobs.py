"""Jobs on PostgreSQL obey the laws of jobs, and agree with their model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
from servers.postgres import MadeSchemas
from servers.queues import MODEL_ON_A_SERVER, ServedQueue

from tailrace.model.claim import Leased, ResultSettlement, Settle
from tailrace.model.demand import Demand
from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.postgres.jobs import PostgresJobs
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.testing.conformance.jobs import JobsLaws
from tailrace.testing.conformance.jobs_endings import JobsEndingLaws
from tailrace.testing.conformance.jobs_engine import KEPT, MOST
from tailrace.testing.conformance.jobs_events import JobEventsLaws
from tailrace.testing.conformance.jobs_gathers import JobsGathersLaws
from tailrace.testing.conformance.jobs_kept import JobsKeptLaws
from tailrace.testing.conformance.jobs_model import JobsModel
from tailrace.testing.conformance.jobs_redrive import JobsBoundsLaws, JobsRedriveLaws
from tailrace.testing.conformance.jobs_retry import JobsRetryLaws
from tailrace.testing.conformance.jobs_rooms import JobsRoomsLaws
from tailrace.testing.conformance.jobs_unfit import JobsUnfitLaws


class _AdvancedQueue(PostgresQueue):
    """A queue whose jobs are advanced at once after settlements and claims; elsewhere a part does so soon after."""

    jobs: PostgresJobs

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        refused = await super().settle(fence, succeeded, others)
        await self.jobs.advance()
        return refused

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        told = await super().settle_results(fence, succeeded, others)
        await self.jobs.advance()
        return told

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        leased = await super().lease(demand, seconds, wait)
        await self.jobs.advance()  # of leases that were over
        return leased


class Engine(ServedQueue):
    """The jobs of a queue in a database of its own."""

    def __init__(self, url: str, schema: str = MadeSchemas.NAME) -> None:
        options = PostgresQueueOptions(url=url, schema=schema, connections=2, notify=False)
        super().__init__(_AdvancedQueue, options, durability="relaxed")
        self._config = self._config.model_copy(update={"max_payload": MOST})

    async def open(self) -> None:
        await super().open()
        self.jobs = self.queue.jobs = PostgresJobs(self.queue, StoresConfig(job_bytes=KEPT))

    async def sweep(self) -> int:
        await self.queue.sweep()
        return await self.jobs.sweep()


class TestPostgresJobs(
    JobsLaws,
    JobsEndingLaws,
    JobsRedriveLaws,
    JobsBoundsLaws,
    JobEventsLaws,
    JobsGathersLaws,
    JobsKeptLaws,
    JobsRoomsLaws,
    JobsRetryLaws,
    JobsUnfitLaws,
):
    @pytest.fixture
    async def engine(self, made_postgres: str) -> AsyncIterator[Engine]:
        engine = Engine(made_postgres)
        await engine.open()
        yield engine
        await engine.close()


class PostgresJobsModel(JobsModel):
    made: MadeSchemas

    async def make_engine(self) -> Engine:
        self.url = self.made.new()
        engine = Engine(self.url)
        await engine.open()
        return engine

    async def dispose(self, engine: Engine) -> None:  # type: ignore[override]
        await engine.close()
        self.made.drop(self.url)


class TestPostgresJobsModel(PostgresJobsModel.TestCase):
    settings = MODEL_ON_A_SERVER

    @pytest.fixture(autouse=True)
    def server(self, made_schemas: MadeSchemas) -> None:
        PostgresJobsModel.made = made_schemas
