"""The embedded dead letters obey the laws of dead letters."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.dead_letters.dead_letters import DeadLetters
from tailrace.stores.dead_letters.sqlite import SCHEMA, SqliteDeadLetters
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.dead_letters import DeadLetterLaws
from tailrace.testing.conformance.embedded import SqliteBench


class TestSqliteDeadLetters(DeadLetterLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[DeadLetters]]:
        return SqliteBench[DeadLetters](folder, SCHEMA, lambda file, clock: SqliteDeadLetters(file))
