"""Every part is restarted in turn under load: nothing is lost, nothing runs twice at once, no attempt is charged."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import cycle, islice
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
TAILER = "name: rolling\nsource: {kind: log, stream: rolling}\nfunction: steady\nwindow: {items: 200}\n"
PARTS = ("node", "worker", "scheduler")
#: Length of each item's run, in hundredths of a second.
TICKS = 20
SLOTS = 8


@asynccontextmanager
async def loaded(folder: Path, items: int) -> AsyncIterator[Platform]:
    """A platform with a log of so many items, and half as many in the queue."""
    async with EmbeddedStores(folder / "data") as stores:
        for start in range(0, items, 500):
            records = [Record(b'{"ticks": %d}' % TICKS)] * min(500, items - start)
            await stores.log.append("rolling", 0, records)
    (folder / "rolling.yaml").write_text(TAILER)
    running = Platform(
        folder / "data",
        [FUNCTIONS],
        tailers=[folder / "rolling.yaml"],
        heartbeat=0.3,
        environment={"TAILRACE_TEST_JOURNAL": str(folder / "journal")},
        worker={"slots": SLOTS, "executors": 1},
    )
    try:
        await running.start()
        async with tailrace.AsyncClient(running.gateway_address, timeout=60) as client:
            for start in range(0, items // 2, 500):
                size = min(500, items // 2 - start)
                await client.submit_many([tailrace.Call("steady", ticks=TICKS) for _ in range(size)])
        yield running
    finally:
        await running.stop()


async def roll(folder: Path, restarts: int, items: int) -> None:
    """Restarts one part after the other while the load lasts, then waits for all of it and reads the journal."""
    journal = folder / "journal"

    def lines() -> list[str]:
        return journal.read_text().splitlines() if journal.exists() else []

    async with loaded(folder, items) as platform:
        await until(lambda: len(lines()) > SLOTS)
        for part in islice(cycle(PARTS), restarts):
            before = platform.pids()[part]
            ended = count(lines(), "end")
            os.kill(before, signal.SIGTERM)
            # The next one goes when this one is back and work has been done since.
            await until(lambda part=part, before=before: platform.pids().get(part, before) != before)
            await until(lambda ended=ended: count(lines(), "end") > ended + SLOTS)
        assert count(lines(), "end") < items + items // 2, "the load was over before the restarts were"
        await until(lambda: len({line.split()[1] for line in lines() if line.startswith("end")}) == items + items // 2)
    verdict = judge(lines())
    assert verdict.overlaps == set()
    assert verdict.ended == verdict.started
    charged = {line for line in lines() if line.startswith("start") and line.split()[3] != "1"}
    assert not charged, "an attempt was charged"


def count(lines: list[str], word: str) -> int:
    return sum(line.startswith(word) for line in lines)


async def until(true: Callable[[], bool], timeout: float = 60.0) -> None:
    async with asyncio.timeout(timeout):
        while not true():
            await asyncio.sleep(0.1)


@pytest.mark.timeout(300)
async def test_a_restart_of_each_part_under_load_loses_nothing_and_charges_no_attempt(tmp_path: Path) -> None:
    await roll(tmp_path, restarts=len(PARTS), items=500)
