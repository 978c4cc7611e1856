"""The embedded inventory obeys the laws of inventories."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.stores.inventory.inventory import Inventory, InventoryEntry
from tailrace.stores.inventory.sqlite import SCHEMA, SqliteInventory
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.inventory import InventoryLaws


class TestSqliteInventory(InventoryLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Inventory]]:
        return SqliteBench[Inventory](folder, SCHEMA, lambda file, clock: SqliteInventory(file))


async def test_a_name_that_is_not_unicode_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    # Given a file name as Python reads it when it is not UTF-8: SQLite would store it and never read it again
    name = b"caf\xe9.json".decode("utf-8", "surrogateescape")
    async with SqliteBench(tmp_path, SCHEMA, lambda file, clock: SqliteInventory(file)) as bench:
        with pytest.raises(InvalidRequest, match="UTF-8"):
            await bench.engine.offer("s", [InventoryEntry("a", "1"), InventoryEntry(name, "1")])
        assert await bench.engine.end("s") == 0
