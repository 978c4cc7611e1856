"""The embedded segments obey the laws of segments."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.segments.segments import Segments
from tailrace.stores.segments.sqlite import SCHEMA, SqliteSegments
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.segments import SegmentLaws


class TestSqliteSegments(SegmentLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Segments]]:
        return SqliteBench[Segments](folder, SCHEMA, lambda file, clock: SqliteSegments(file))
