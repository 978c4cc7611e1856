"""The embedded control store obeys the laws of control stores."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.control.control import Control
from tailrace.stores.control.sqlite import SCHEMA, SqliteControl
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.control import ControlLaws
from tailrace.testing.conformance.embedded import SqliteBench


class TestSqliteControl(ControlLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Control]]:
        return SqliteBench[Control](folder, SCHEMA, SqliteControl)
