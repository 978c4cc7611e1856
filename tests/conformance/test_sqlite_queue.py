"""The queue on SQLite obeys the laws of queues, and agrees with their model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, settings

from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.queue import MAX_PAYLOAD, QueueLaws
from tailrace.testing.conformance.queue_callbacks import CallbackLaws
from tailrace.testing.conformance.queue_model import QueueModel
from tailrace.testing.conformance.queue_races import RaceLaws
from tailrace.testing.conformance.queue_search import SearchLaws
from tailrace.testing.conformance.queue_sweeps import SweepLaws
from tailrace.testing.conformance.queue_turns import DEPTH


class Engine:
    """The queue in a file, under a clock of the test's own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clock = ManualClock()
        self._file = self._make()

    def _make(self) -> SqliteFile:
        file = SqliteFile(self._path, SCHEMA, name="queue", synchronous="NORMAL")
        self.queue = SqliteQueue(file, StoresConfig(max_payload=MAX_PAYLOAD), self._clock)
        return file

    async def open(self) -> None:
        await self._file.open()
        await self.queue.open()

    async def close(self) -> None:
        await self._file.close()

    def now(self) -> float:
        return self._clock.wall()

    def jump(self, seconds: float) -> None:
        self._clock.jump(seconds)

    async def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    async def reopen(self) -> None:
        await self.close()
        self._file = self._make()
        await self.open()


class TestSqliteQueue(QueueLaws, CallbackLaws, RaceLaws, SearchLaws, SweepLaws):
    behind = DEPTH

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        engine = Engine(tmp_path / "queue.db")
        await engine.open()
        yield engine
        await engine.close()


class SqliteQueueModel(QueueModel):
    async def make_engine(self) -> Engine:
        self.folder = TemporaryDirectory()
        engine = Engine(Path(self.folder.name) / "queue.db")
        await engine.open()
        return engine

    async def dispose(self, engine: Engine) -> None:  # type: ignore[override]
        await engine.close()
        self.folder.cleanup()


TestSqliteQueueModel = SqliteQueueModel.TestCase
TestSqliteQueueModel.settings = settings(
    max_examples=20,
    stateful_step_count=40,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.long(minutes=1)
class TestSqliteQueueModelAtLength(SqliteQueueModel.TestCase):
    settings = settings(TestSqliteQueueModel.settings, max_examples=400, stateful_step_count=60)
