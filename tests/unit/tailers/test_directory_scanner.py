"""A folder whose inventory is out of order for a while: the source says so, and misses no file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tailrace.model.errors import NotConnected, StoreFull
from tailrace.stores.inventory import sqlite as inventory
from tailrace.stores.inventory.inventory import Entries, InventoryEntry
from tailrace.tailers.sources.directory import DirectoryOptions, DirectorySource
from tailrace.testing.conformance.embedded import SqliteBench


class Failing:
    """An inventory that refuses while `full`."""

    def __init__(self, engine: inventory.SqliteInventory) -> None:
        self._engine = engine
        self.full = False
        self.refused = asyncio.Event()

    async def offer(self, source: str, entries: Sequence[InventoryEntry]) -> int:
        if self.full and entries:
            self.refused.set()
            raise StoreFull("no space")
        return await self._engine.offer(source, entries)

    async def read(self, source: str, position: int, limit: int) -> Entries:
        return await self._engine.read(source, position, limit)

    async def end(self, source: str) -> int:
        return await self._engine.end(source)

    async def forget(self, source: str) -> None:
        await self._engine.forget(source)


async def test_a_file_found_while_the_inventory_was_full_is_read_after_connecting_again(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"a")
    async with SqliteBench(tmp_path, inventory.SCHEMA, lambda file, clock: inventory.SqliteInventory(file)) as bench:
        failing = Failing(bench.engine)
        source = DirectorySource(DirectoryOptions(path=str(folder), payload="content", poll=0.01), failing, "d")
        await source.open({})
        assert (await source.read(10, 1 << 20, 5.0))[0].payloads == [b"a"]
        # Given a file that the inventory could not take
        failing.full = True
        (folder / "b").write_bytes(b"b")
        await asyncio.wait_for(failing.refused.wait(), 5.0)
        # When somebody reads, then the source says that it is out of order rather than that there is nothing
        with pytest.raises(NotConnected, match="no space"):
            await source.read(10, 1 << 20, 5.0)
        # And after the pump has connected again, the file is there
        failing.full = False
        await source.close()
        await source.open({"0": 1})
        try:
            assert (await source.read(10, 1 << 20, 5.0))[0].payloads == [b"b"]
        finally:
            await source.close()
