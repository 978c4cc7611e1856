"""The embedded drops obey the laws of drops."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.drops.drops import Drops
from tailrace.stores.drops.sqlite import SCHEMA, SqliteDrops
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.drops import DropLaws
from tailrace.testing.conformance.embedded import SqliteBench


class TestSqliteDrops(DropLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Drops]]:
        return SqliteBench[Drops](folder, SCHEMA, lambda file, clock: SqliteDrops(file))
