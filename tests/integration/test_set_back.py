"""A volume that is set back to a snapshot, stamp and all, is noticed by marks that are remembered outside it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace.assembly.embedded import STAMPED, EmbeddedStores
from tailrace.cli import app
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import Unavailable
from tailrace.model.lease import LeaseSizes, wait_for_source
from tailrace.model.search import Search
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.testing.clock import ManualClock

from ..scenes.lone_node import node
from ..scenes.set_back import set_back

ANY = Demand({Cell("f", 2): 1000}, frozenset(), 1000)
SIZES = LeaseSizes()
QUIET = wait_for_source(SIZES)


def stores(folder: Path, clock: ManualClock) -> EmbeddedStores:
    config = StoresConfig(delay_queue="sqlite")
    return EmbeddedStores(folder / "data", config, clock=clock, sizes=SIZES, run_dir=folder)


async def snapshot(folder: Path) -> None:
    """Copies the folder, by another process: to close a database's file in this one would take its locks."""
    await asyncio.to_thread(subprocess.run, ["cp", "-a", folder / "data", folder / "snapshot"], check=True)


async def use(one: EmbeddedStores) -> tuple[int, int]:
    """Hands out all that is there and something new, and takes a stream. Returns the fence and the epoch."""
    await one.queue.submit([NewItem(Kind("f", 2), b"x")])
    leased = await one.queue.lease(ANY, SIZES.source, 0)
    assert leased is not None
    owner = await one.ownership.read("s", "")
    taken = await one.ownership.take("s", "", "me", SIZES.source, owner.version if owner else 0)
    assert taken is not None
    return leased.fence, taken.epoch


async def is_quiet(one: EmbeddedStores) -> bool:
    """Whether nothing is handed out."""
    if await one.queue.lease(ANY, SIZES.source, 0) is not None:
        return False
    owner = await one.ownership.read("s", "")
    with pytest.raises(Unavailable):
        await one.ownership.take("s", "", "me", SIZES.source, owner.version if owner else 0)
    return True


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("clock_too", [False, True])
async def test_after_a_volume_was_set_back_nothing_is_handed_out_until_what_may_run_is_over(
    tmp_path: Path, running: bool, clock_too: bool
) -> None:
    clock = ManualClock()
    # Given a snapshot of a data directory, whether a node ran on it or not
    async with stores(tmp_path, clock) as one:
        await one.queue.submit([NewItem(Kind("f", 2), b"x")])
        if running:
            await snapshot(tmp_path)
    if not running:
        await snapshot(tmp_path)
    # … and what was handed out after it
    clock.advance(3600)
    async with stores(tmp_path, clock) as one:
        fence, epoch = await use(one)
    # When the volume is set back, and the machine's clock with it
    set_back(tmp_path / "data", tmp_path / "snapshot")
    if clock_too:
        clock.jump(-3600)
    # Then nothing is handed out, whoever dies in the middle of the wait
    for part in (0.5, 1.0):
        again = stores(tmp_path, clock)
        await again.start()
        clock.advance(part * QUIET - 0.1)
        assert await is_quiet(again)
        if part < 1:
            assert "queue.db, state.db: set back" in again.troubles()[0].what
            await again.stop()
    # And after it everything is above what was given
    clock.advance(0.2)
    later = await use(again)
    assert later > (fence, epoch)
    assert later[1] > epoch
    await again.stop()
    # And a plain restart waits for nothing, and has nothing to tell
    async with stores(tmp_path, clock) as one:
        clock.advance(SIZES.source)
        assert await use(one) > later
        assert one.troubles() == []


@pytest.mark.parametrize("name", STAMPED)
async def test_each_database_that_was_set_back_alone_is_noticed(tmp_path: Path, name: str) -> None:
    clock = ManualClock()
    async with stores(tmp_path, clock) as one:
        await use(one)
        await one.log.create("s", 1)
        await one.delay_log.create("s", 1)
    await snapshot(tmp_path)
    clock.advance(60)
    async with stores(tmp_path, clock) as one:
        await use(one)
        for log in (one.log, one.delay_log):
            await log.append("s", 0, [Record(b"x")])
            await log.trim("s", 0, 1)
        assert one.delay_queue is not None
        await one.delay_queue.submit([NewItem(Kind("f", 2), b"x")])
        assert await one.delay_queue.lease(ANY, SIZES.source, 0) is not None
    # When one database is set back
    for file in (tmp_path / "snapshot").iterdir():
        if file.name != name:
            file.unlink()
    (tmp_path / "snapshot" / "tailrace.stamp").write_text((tmp_path / "data" / "tailrace.stamp").read_text())
    newer = {file.name for file in (tmp_path / "data").iterdir()} - {name, "tailrace.stamp"}
    for each in newer:
        (tmp_path / "snapshot" / each).write_bytes((tmp_path / "data" / each).read_bytes())
    set_back(tmp_path / "data", tmp_path / "snapshot")
    again = stores(tmp_path, clock)
    again._stamp.moved = list  # type: ignore[method-assign,assignment] # its mark was written over too
    await again.start()
    # Then that one is named
    assert again.troubles()[0].what.startswith(f"{name}: set back")
    await again.stop()


async def test_what_the_retention_forgot_is_no_step_back(tmp_path: Path) -> None:
    # Given an item that was handed out, ended and forgotten
    clock = ManualClock()
    async with stores(tmp_path, clock) as one:
        fence, _ = await use(one)
        (status,) = (await one.queue.find(Search())).statuses
        await one.queue.settle(fence, [status.id], [])
        clock.advance(30 * 86_400)
        while await one.queue.sweep():
            pass
        assert (await one.queue.find(Search())).statuses == []
    # Then the next run has nothing to tell
    async with stores(tmp_path, clock) as one:
        assert one.troubles() == []
        clock.jump(-30 * 86_400)
        assert (await use(one))[0] > fence


async def test_operators_of_a_node_are_told(tmp_path: Path) -> None:
    # Given a snapshot of a node's volume, and items that it handed out later
    async with node(tmp_path) as one:
        await use(one._stores)
    await snapshot(tmp_path)
    async with node(tmp_path) as one:
        await use(one._stores)
    # When the volume is set back, Then `tailrace alerts` says so
    set_back(tmp_path / "data", tmp_path / "snapshot")
    async with node(tmp_path) as one:
        told = await asyncio.to_thread(CliRunner().invoke, app, ["alerts", "--json", "--gateway", one.address])
        (alert,) = [each for each in json.loads(told.stdout) if each["subject"] == "stores"]
        assert alert["what"].startswith("queue.db, state.db: set back")
        assert "submitted again" in alert["todo"]


async def test_without_a_run_directory_that_can_be_written_the_stores_work_and_say_so(tmp_path: Path) -> None:
    clock = ManualClock()
    (tmp_path / "stores").write_text("no folder")
    one = stores(tmp_path, clock)
    async with one:
        await use(one)
        await one._note()
        assert [*one.duties.ailing] == ["the note of the stores' heights in the run directory"]
        (tmp_path / "stores").unlink()
        clock.advance(10)
        await one._note()
        assert not one.duties.ailing
