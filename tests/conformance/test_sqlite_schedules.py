"""The embedded schedules obey the laws of schedules."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.schedules.schedules import Schedules
from tailrace.stores.schedules.sqlite import SCHEMA, SqliteSchedules
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.schedules import ScheduleLaws


class TestSqliteSchedules(ScheduleLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Schedules]]:
        return SqliteBench[Schedules](folder, SCHEMA, lambda file, clock: SqliteSchedules(file))
