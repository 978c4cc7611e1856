"""A store that is set back while its schedulers live: they remember the claims that it gave, and it holds off."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from scenes.scheduler_place import SIZES, Place, place
from scenes.set_back import set_back

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import tailers_environment
from tailrace.assembly.remote import RemoteStores
from tailrace.model.height import Height
from tailrace.model.lease import wait_for_source
from tailrace.model.workload import Kind
from tailrace.stores.heights import QUEUE, STATE
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.server import StoreServer
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.resources import Resources
from tailrace.tailers.tailer import Tailer
from tailrace.testing.clock import ManualClock

from .conftest import FakeParking, until

__all__ = ["place"]

QUIET = wait_for_source(SIZES)
SOURCES = {
    "queue": {"source": {"kind": "queue"}},
    "log": {"source": {"kind": "log", "stream": "s"}, "function": "f"},
}


class Run:
    """Stores in a folder, with a clock of their own, and a tailer of them, in this process or beside a store server."""

    def __init__(self, folder: Path, clock: ManualClock, place: Place, kind: str, remote: bool) -> None:
        self.stores = EmbeddedStores(folder / "data", clock=clock, sizes=SIZES)
        self._place, self._kind, self._remote = place, kind, remote

    @asynccontextmanager
    async def tailer(self) -> AsyncIterator[Tailer]:
        server = StoreServer("127.0.0.1:0", self.stores.engines())
        await server.start()
        remote = RemoteStores(server.address)
        environment: Any = tailers_environment(remote if self._remote else self.stores)
        resources = Resources(environment, self._place.server.address, FakeParking(), SIZES)
        tailer = Tailer(TailerConfig.model_validate({"name": "t", **SOURCES[self._kind]}), resources)
        await tailer.start()
        try:
            yield tailer
        finally:
            await tailer.stop()
            await remote.stop()
            await server.stop()


@pytest.mark.parametrize(
    ("kind", "remote"),
    [
        ("queue", False),
        ("log", True),
        *(pytest.param(*each, marks=pytest.mark.long(minutes=0.1)) for each in (("queue", True), ("log", False))),
    ],
)
async def test_what_a_store_gave_and_does_not_know_is_not_given_again_while_it_runs(
    tmp_path: Path, place: Place, kind: str, remote: bool
) -> None:
    clock = ManualClock()
    worker = await place.worker("f", hold=True)
    # Given a snapshot of stores with one item
    one = Run(tmp_path, clock, place, kind, remote)
    async with one.stores as stores:
        await stores.log.create("s", 1)
        await stores.log.append("s", 0, [Record(b"{}")])
        await stores.queue.submit([NewItem(Kind("f", 1), b"{}")])
    await asyncio.to_thread(subprocess.run, ["cp", "-a", tmp_path / "data", tmp_path / "snapshot"], check=True)
    # … which a worker runs since
    one = Run(tmp_path, clock, place, kind, remote)
    async with one.stores, one.tailer():
        await worker.until(lambda: worker.fences)
    # When the volume is set back
    set_back(tmp_path / "data", tmp_path / "snapshot")
    clock.advance(60)
    again = Run(tmp_path, clock, place, kind, remote)
    async with again.stores as stores, again.tailer():
        # Then the tailer hears of it from the scheduler, before it hands anything to it
        await until(lambda: bool(stores.troubles()))
        assert "set back" in stores.troubles()[0].what
        # And nothing is handed out before what runs is over, whose lease nobody renews
        await worker.until(lambda: worker.cancelled)
        clock.advance(QUIET - 1)
        assert stores.queue.quiet_until > clock.monotonic()
        assert len(worker.fences) == 1
        # And then it is, under a higher fence
        clock.advance(2)
        await worker.until(lambda: len(worker.fences) == 2, timeout=40)
        assert worker.fences[1] > worker.fences[0]


@pytest.mark.parametrize("kind", [*SOURCES])
async def test_a_store_that_was_not_set_back_waits_for_nothing(tmp_path: Path, place: Place, kind: str) -> None:
    clock = ManualClock()
    worker = await place.worker("f")
    for number in range(1, 4):
        # When stores are opened again and again, and used, at the same scheduler
        one = Run(tmp_path, clock, place, kind, remote=False)
        async with one.stores as stores:
            await stores.log.create("s", 1)
            await stores.log.append("s", 0, [Record(b"{}")])
            await stores.queue.submit([NewItem(Kind("f", 1), b"{}")])
            async with one.tailer() as tailer:
                # Then each item runs
                await worker.until(lambda expected=number: len(worker.fences) >= expected)
                await tailer.drain(10)
            assert stores.troubles() == []
        clock.advance(30)


async def test_what_a_store_is_told_while_it_runs(tmp_path: Path) -> None:
    clock = ManualClock()
    async with EmbeddedStores(tmp_path, clock=clock, sizes=SIZES) as stores:
        heights = stores.heights
        for store in (QUEUE, STATE):
            name = await heights.name(store)
            assert name
            # Given what this run may have given, what another store gave, and what nobody gave
            opened = int(clock.wall() * 1e6)
            assert not await heights.seen(store, Height("another", opened - 1))
            assert not await heights.seen(store, Height(name, 0))
            assert stores.troubles() == []
            # When it is told of what was given between its height and its opening, then it was set back, once
            assert await heights.seen(store, Height(name, opened - 5))
            assert not await heights.seen(store, Height(name, opened - 5))
            assert stores.troubles()
            stores.heights._trouble = None
            # And what it gives after its clock was set back is its own
            clock.jump(-60)
            assert not await heights.seen(store, Height(name, int(clock.wall() * 1e6)))
            assert stores.troubles() == []
            clock.jump(60)
        assert await heights.name("log") == ""
        assert not await heights.seen("log", Height("x", 1))
