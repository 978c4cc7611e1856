"""Jobs behind a store server obey the laws of jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes.served_stores import serving

from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.sqlite.jobs import SqliteJobs
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.remote import RemoteJobs, RemoteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.jobs import JobsLaws
from tailrace.testing.conformance.jobs_engine import MOST


class Engine:
    """The queue and its jobs, each as a client of a store server; `reopen` opens the server's file again."""

    def __init__(self, path: Path, clock: ManualClock) -> None:
        self._path = path
        self._clock = clock
        self._file = SqliteFile(path, SCHEMA, name="queue", synchronous="NORMAL")
        self._there = SqliteQueue(self._file, StoresConfig(max_payload=MOST), clock)
        self._jobs = SqliteJobs(self._there)
        self.queue: RemoteQueue
        self.jobs: RemoteJobs

    @property
    def engines(self) -> dict[str, object]:
        return {"queue": self._there, "jobs": self._jobs}

    async def open(self) -> None:
        await self._file.open()
        await self._there.open()

    async def close(self) -> None:
        await self._file.close()

    async def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def jump(self, seconds: float) -> None:
        self._clock.jump(seconds)

    async def reopen(self) -> None:
        await self._file.close()
        await self._there.close()
        await self.open()

    async def sweep(self) -> int:
        await self._there.sweep()
        return await self._jobs.sweep()


class TestRemoteJobs(JobsLaws):
    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        engine = Engine(tmp_path / "queue.db", ManualClock())
        await engine.open()
        async with serving(engine.engines) as address, RemoteQueue(address) as queue, RemoteJobs(address) as jobs:
            engine.queue, engine.jobs = queue, jobs
            yield engine
        await engine.close()
