"""A node dies over items that run for long: its successor adopts them at once, and none is run twice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.platform import Platform
from tailrace.model.lease import LeaseSizes
from tailrace.stores.log.log import Record
from tailrace.stores.ownership.ownership import Owner
from tailrace.stores.remote import RemoteOwnership

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS = 40
#: Leases of 14.4 s for a source: a takeover that waits for one is told from one that does not, on a busy machine too.
HEARTBEAT = 2.0
SIZES = LeaseSizes.of_heartbeat(HEARTBEAT)
TAILER = "name: long\nsource: {kind: log, stream: long}\nfunction: work\n"


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    async with EmbeddedStores(tmp_path / "data") as stores:
        await stores.log.append("long", 0, [Record(b'{"seconds": 6}')] * ITEMS)
    (tmp_path / "long.yaml").write_text(TAILER)
    running = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "long.yaml"],
        heartbeat=HEARTBEAT,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")},
        worker={"slots": 20, "executors": 1},
    )
    await running.start()
    yield running
    await running.stop()


async def test_a_killed_node_is_followed_at_once_and_nothing_runs_twice(platform: Platform, tmp_path: Path) -> None:
    # Given a log whose items run for seconds, as many as the worker has slots
    events = Journal(tmp_path / "journal")
    await events.reached(lambda: events.count("start") >= 20)
    first = await row(platform)
    # When the node is killed
    os.kill(platform.pids()["node"], signal.SIGKILL)
    # Then the next one owns the log as soon as it is up, without waiting for the lease
    killed = time.monotonic()
    second = first
    async with asyncio.timeout(30):
        while second.epoch == first.epoch:
            await asyncio.sleep(0.02)
            second = await row(platform, second)
    waited = time.monotonic() - killed
    assert waited < SIZES.source, f"taken over after {waited:.1f} s"
    # And every item is run once, those that ran at the kill under the fence that they had
    await events.reached(lambda: events.count("end") >= ITEMS)
    assert events.count("start") == ITEMS
    assert {line[3] for line in events.lines} == {"1"}, "no attempt is charged"
    fences = {int(line[2]) for line in events.lines}
    assert min(fences) > first.epoch << 32 and max(fences) > second.epoch << 32


class Journal:
    """The journal that the functions wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[list[str]] = []

    def count(self, word: str) -> int:
        return sum(line[0] == word for line in self.lines)

    async def reached(self, enough) -> None:  # type: ignore[no-untyped-def]
        async with asyncio.timeout(60):
            while True:
                if self.path.exists():
                    self.lines = [line.split() for line in self.path.read_text().splitlines() if line.count(" ") == 5]
                    if enough():
                        return
                await asyncio.sleep(0.05)


async def row(platform: Platform, before: Owner | None = None) -> Owner:
    """The row of ownership, by the store; while no node answers, the one before."""
    async with RemoteOwnership(platform.store_address) as ownership:
        try:
            found = await ownership.read("long", "")
        except Exception:
            if before is None:
                raise
            return before
    assert found is not None
    return found
