"""The embedded store of usage obeys the laws of those stores."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.usage.sqlite import SCHEMA, SqliteUsage
from tailrace.stores.usage.usage import Usage
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.usage import UsageLaws


class TestSqliteUsage(UsageLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Usage]]:
        return SqliteBench[Usage](folder, SCHEMA, lambda file, clock: SqliteUsage(file))
