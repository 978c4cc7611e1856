"""The embedded results obey the laws of results."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.results.results import Results
from tailrace.stores.results.sqlite import SCHEMA, SqliteResults
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.results import MAX_BYTES, RETENTION, ResultLaws


class TestSqliteResults(ResultLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Results]]:
        return SqliteBench[Results](
            folder, SCHEMA, lambda file, clock: SqliteResults(file, clock, retention=RETENTION, max_bytes=MAX_BYTES)
        )
