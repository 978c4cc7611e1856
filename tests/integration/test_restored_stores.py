"""Starts on restored stores: nothing is handed out for the lease of a source, whichever process dies meanwhile. The
rights of processes that live on are in `testing/conformance/moved.py`."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.assembly.embedded import STAMPED, EmbeddedStores
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import ConfigError, Unavailable
from tailrace.model.lease import LeaseSizes, wait_for_source
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.testing.clock import ManualClock

ANY = Demand({Cell("f", 2): 10}, frozenset(), 10)
SIZES = LeaseSizes()


async def test_nothing_is_leased_and_no_stream_is_taken_until_what_may_run_is_over(tmp_path: Path) -> None:
    clock = ManualClock()

    def stores() -> EmbeddedStores:
        return EmbeddedStores(tmp_path / "data", clock=clock, sizes=SIZES)

    async with stores() as one:
        await one.queue.submit([NewItem(Kind("f", 2), b"x")])
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    # Given an item and a stream that were handed out after the backup
    async with stores() as one:
        leased = await one.queue.lease(ANY, SIZES.source, 0)
        assert leased is not None
        assert await one.ownership.take("s", "", "me", SIZES.source, 0) is not None
    # When the backup is put back, and the first run after it dies in the middle of its wait
    shutil.rmtree(tmp_path / "data")
    shutil.copytree(tmp_path / "backup", tmp_path / "data")
    for part in (0.5, 1.0):
        again = stores()
        await again.start()
        clock.advance(part * wait_for_source(SIZES) - 0.1)
        assert await again.queue.lease(ANY, SIZES.source, 0) is None
        with pytest.raises(Unavailable, match="put back from a copy"):
            await again.ownership.take("s", "", "me", SIZES.source, 0)
        mover = Mover(again.delay_log, again.checkpoints, again.ownership, DelayConfig(), clock)
        await mover.start()
        assert "put back from a copy" in mover.why
        await mover.stop()
        if part < 1:
            await again.stop()
    # Then both are handed out when the wait is over, above everything before
    clock.advance(0.2)
    later = await again.queue.lease(ANY, SIZES.source, 0)
    assert later is not None
    assert later.fence > leased.fence
    assert await again.ownership.take("s", "", "me", SIZES.source, 0) is not None
    await again.stop()
    # And a plain restart waits for nothing
    async with stores() as one:
        await one.queue.submit([NewItem(Kind("f", 2), b"y")])
        assert await one.queue.lease(ANY, SIZES.source, 0) is not None


#: A node's stores that take one item in and are killed.
_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem

async def main():
    async with EmbeddedStores(Path(sys.argv[1])) as stores:
        await stores.queue.submit([NewItem(Kind("f", 2), b"taken in")])
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


#: Somebody who has a transaction open.
_READER = """
import sqlite3, sys, time
reader = sqlite3.connect(sys.argv[1], isolation_level=None)
reader.execute("BEGIN")
print(reader.execute("SELECT count(*) FROM tasks").fetchone(), flush=True)
time.sleep(600)
"""


def run_and_kill(data: Path) -> None:
    assert subprocess.run([sys.executable, "-c", _KILLED, str(data)], check=False).returncode == -9


async def items_in(data: Path) -> int:
    async with EmbeddedStores(data) as stores:
        return sum((await stores.queue.counts()).values())


@pytest.mark.parametrize("back", [("queue.db",), ("state.db",), ("queue.db", "state.db", "log.db", "delay.db")])
async def test_a_run_that_is_killed_in_its_wait_after_a_restore_is_followed_by_one_that_waits(
    tmp_path: Path, back: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    # Given files that were put back while the node was stopped, and a run that took work in before its wait was over
    data = tmp_path / "data"
    async with EmbeddedStores(data):
        pass
    shutil.copyfile(data / "queue.db", tmp_path / "earlier.db")
    for name in back:
        shutil.copyfile(data / name, tmp_path / name)
        (tmp_path / name).replace(data / name)
    # When it is killed, with its write-ahead logs beside the files
    run_and_kill(data)
    assert (data / "queue.db-wal").stat().st_size
    # Then the next one plays them in, and waits as well for what was put back
    assert await items_in(data) == 1
    [said] = [record.getMessage() for record in caplog.records if "put back from a copy" in record.getMessage()]
    assert {name for name in STAMPED if name in said} == {*back}
    # And a copy that is put over a run that was killed is refused still
    run_and_kill(data)
    shutil.copyfile(tmp_path / "earlier.db", data / "queue.db")
    with pytest.raises(ConfigError, match="left behind by a run that died"):
        await items_in(data)


async def test_a_run_that_a_reader_kept_from_marking_its_file_is_followed_after_a_power_cut(tmp_path: Path) -> None:
    # Given somebody who reads the queue's file while a node opens it
    data = tmp_path / "data"
    async with EmbeddedStores(data):
        pass
    reader = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _READER, str(data / "queue.db"), stdout=asyncio.subprocess.PIPE
    )
    assert reader.stdout is not None and await reader.stdout.readline()
    # When both are killed
    run_and_kill(data)
    reader.kill()
    await reader.wait()
    # Then the next run finds what was taken in
    assert await items_in(data) == 1
