"""The embedded replays obey the laws of replays."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.replays.replays import Replays
from tailrace.stores.replays.sqlite import SCHEMA, SqliteReplays
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.replays import ReplayLaws


class TestSqliteReplays(ReplayLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Replays]]:
        return SqliteBench[Replays](folder, SCHEMA, lambda file, clock: SqliteReplays(file))
