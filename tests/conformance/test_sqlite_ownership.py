"""The embedded ownership store obeys the laws of ownership, and survives being restored from a backup."""

from __future__ import annotations

import shutil
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tailrace.stores.ownership.ownership import Ownership
from tailrace.stores.ownership.sqlite import SCHEMA, SqliteOwnership
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.ownership import OwnershipLaws


class TestSqliteOwnership(OwnershipLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Ownership]]:
        return SqliteBench[Ownership](folder, SCHEMA, SqliteOwnership)


async def test_a_store_restored_from_an_older_backup_gives_no_epoch_and_no_version_twice(tmp_path: Path) -> None:
    # Given a backup, and owners that took the source after it was made
    bench = SqliteBench[Ownership](tmp_path, SCHEMA, SqliteOwnership)
    async with bench:
        first = await bench.engine.take("s", "", "a", 36, 0)
        assert first is not None
    shutil.copy(tmp_path / "store.db", tmp_path / "backup")
    async with bench:
        last = first
        for _ in range(3):
            bench.clock.advance(2)
            taken = await bench.engine.take("s", "", "a", 36, last.version)
            assert taken is not None
            last = await bench.engine.renew("s", "", taken.epoch, ["x"])
    # When the backup is put back, and somebody takes the source as it finds it
    shutil.copy(tmp_path / "backup", tmp_path / "store.db")
    bench.clock.advance(1)
    async with bench:
        assert await bench.engine.read("s", "") == first
        again = await bench.engine.take("s", "", "b", 36, first.version)
    # Then its epoch and its version are above all that were ever given
    assert again is not None
    assert again.epoch > last.epoch
    assert again.version > last.version
