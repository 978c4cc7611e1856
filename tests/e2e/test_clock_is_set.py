"""The wall clock is set while the whole platform is down: items that were out run again when their leases are over, not
before and not years later."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes.wrong_clock import with_clock

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.model.lease import LeaseSizes

FUNCTIONS = Path(__file__).parent / "journaled_functions.py"
HEARTBEAT = 1.0
SIZES = LeaseSizes.of_heartbeat(HEARTBEAT)


@pytest.fixture
async def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    about = {"heartbeat": HEARTBEAT, "worker": {"slots": 2, "executors": 1}}
    running = with_clock(tmp_path, monkeypatch, FUNCTIONS, **about)
    await running.start()
    yield running
    await running.stop()


async def starts(journal: Path, count: int) -> list[float]:
    """Waits for `count` starts. Returns their moments (CLOCK_MONOTONIC)."""
    async with asyncio.timeout(60):
        while True:
            lines = [line.split() for line in journal.read_text().splitlines()] if journal.exists() else []
            found = [float(line[4]) for line in lines if line[0] == "start"]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("step", [86_400.0, -1.7e9], ids=["a day forward", "back to the seventies"])
async def test_what_was_out_runs_again_within_its_lease(platform: Platform, tmp_path: Path, step: float) -> None:
    # Given an item that runs
    client = tailrace.AsyncClient(platform.gateway_address)
    async with client:
        await client.submit("takes_long")
    await starts(tmp_path / "journal", 1)
    # When everything is killed, and the clock is another one when it starts again
    os.kill(platform.pids()["node"], signal.SIGSTOP)
    (tmp_path / "clock").write_text(str(step))
    for pid in platform.pids().values():
        os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    # Then it runs again when the lease of its source is over, of which a heartbeat or two were over at the kill
    _, again = await starts(tmp_path / "journal", 2)
    assert SIZES.source - 2 * HEARTBEAT - 1.0 <= again - killed <= SIZES.source + 10.0
