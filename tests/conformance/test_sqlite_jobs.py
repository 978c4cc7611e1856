"""Jobs on SQLite obey the laws of jobs, and agree with their model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, settings

from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.sqlite.jobs import SqliteJobs
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock
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


class Engine:
    """The queue in a file with its jobs, under a clock of the test's own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clock = ManualClock()
        self._file = self._make()

    def _make(self) -> SqliteFile:
        file = SqliteFile(self._path, SCHEMA, name="queue", synchronous="NORMAL")
        self.queue = SqliteQueue(file, StoresConfig(max_payload=MOST), self._clock)
        self.jobs = SqliteJobs(self.queue, StoresConfig(job_bytes=KEPT))
        return file

    async def open(self) -> None:
        await self._file.open()
        await self.queue.open()

    async def close(self) -> None:
        await self._file.close()

    async def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def jump(self, seconds: float) -> None:
        self._clock.jump(seconds)

    async def reopen(self) -> None:
        await self.close()
        self._file = self._make()
        await self.open()

    async def sweep(self) -> int:
        await self.queue.sweep()
        return await self.jobs.sweep()


class TestSqliteJobs(
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
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        engine = Engine(tmp_path / "queue.db")
        await engine.open()
        yield engine
        await engine.close()


class SqliteJobsModel(JobsModel):
    async def make_engine(self) -> Engine:
        self.folder = TemporaryDirectory()
        engine = Engine(Path(self.folder.name) / "queue.db")
        await engine.open()
        return engine

    async def dispose(self, engine: Engine) -> None:  # type: ignore[override]
        await engine.close()
        self.folder.cleanup()


TestSqliteJobsModel = SqliteJobsModel.TestCase
TestSqliteJobsModel.settings = settings(
    max_examples=30,
    stateful_step_count=40,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
