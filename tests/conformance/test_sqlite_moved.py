"""The embedded state obeys the laws of one that was put back from a copy."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.lease import LeaseSizes, wait_for_source
from tailrace.stores.state.state import StateStores
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.moved import MovedLaws


class MovingBench:
    """A data directory and its copy."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self._folder = folder

    @property
    def engine(self) -> StateStores:
        return self._stores.state

    async def open(self) -> None:
        self._stores = EmbeddedStores(self._folder / "data", clock=self.clock)
        await self._stores.start()

    async def close(self) -> None:
        await self._stores.stop()

    async def reopen(self) -> None:
        await self.close()
        await self.open()

    async def move(self) -> None:
        await self.close()
        shutil.copytree(self._folder / "data", self._folder / "backup")
        shutil.rmtree(self._folder / "data")
        shutil.copytree(self._folder / "backup", self._folder / "data")
        await self.open()

    async def wait_out(self) -> None:
        self.clock.advance(wait_for_source(LeaseSizes()) + 0.1)


class TestSqliteMoved(MovedLaws):
    @asynccontextmanager
    async def bench(self, folder: Path) -> AsyncIterator[MovingBench]:  # type: ignore[override]
        bench = MovingBench(folder)
        await bench.open()
        yield bench
        await bench.close()
