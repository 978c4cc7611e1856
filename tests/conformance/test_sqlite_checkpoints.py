"""The embedded checkpoints obey the laws of checkpoints."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.checkpoints.checkpoints import Checkpoints
from tailrace.stores.checkpoints.sqlite import SCHEMA, SqliteCheckpoints
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.checkpoints import CheckpointLaws
from tailrace.testing.conformance.embedded import SqliteBench


class TestSqliteCheckpoints(CheckpointLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Checkpoints]]:
        return SqliteBench[Checkpoints](folder, SCHEMA, lambda file, clock: SqliteCheckpoints(file))
