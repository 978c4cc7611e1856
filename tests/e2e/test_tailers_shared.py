"""Several processes with the same files share them: each file's source is at one of them, by balance; when a process
comes, some are handed over, and when one is killed the others take over its sources. By the journal of the functions
each item ran, none twice at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.wire.operators import OperatorClient

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
FILES = [f"orders-{n}" for n in range(8)]
LIVE = "name: {name}\nsource: {{kind: log, stream: {name}}}\nfunction: work\nwindow: {{items: 20}}\n"


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "leases.yaml").write_text("heartbeat: 0.5s\n")
    for name in FILES:
        (tmp_path / f"{name}.yaml").write_text(LIVE.format(name=name))
    (tmp_path / "journal").touch()
    running = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")},
        worker={"executors": 1, "slots": 40},
    )
    await running.start()
    yield running
    await running.stop()


class Fleet:
    """Processes with tailers, and the sources that each has."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        addresses = {
            "--scheduler": platform.scheduler_address,
            "--delay": platform.delay_address,
            "--store": platform.store_address,
            "--config": str(folder / "config"),
        }
        self._command = [sys.executable, "-m", "tailrace.cli", "tailer", "run", *(f"{name}.yaml" for name in FILES)]
        self._command += [word for pair in addresses.items() for word in pair]
        self._folder = folder
        self._operators = OperatorClient(platform.gateway_address)
        self.processes: list[subprocess.Popen[bytes]] = []

    async def __aenter__(self) -> Fleet:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._operators.close()
        for each in self.processes:
            each.kill()
            each.wait()

    def start(self) -> int:
        self.processes.append(subprocess.Popen(self._command, cwd=self._folder))
        return self.processes[-1].pid

    async def homes(self) -> dict[str, int]:
        """The process that reads each source, by the name of the source."""
        overview = await self._operators.overview()
        return {
            each.name: int(each.process.rpartition(":")[2])
            for each in overview.tailers
            if each.state == "running" and each.process and each.name in FILES
        }

    async def shared(self, *pids: int, by: int = 1) -> dict[str, int]:
        """Waits until all sources are read, by these processes and by so many of them: the home of a source is drawn
        with the processes' ids."""
        found: dict[str, int] = {}
        async with asyncio.timeout(90):
            while len(found) < len(FILES) or not {*found.values()} <= {*pids} or len({*found.values()}) < by:
                await asyncio.sleep(0.1)
                found = await self.homes()
        return found


async def test_files_are_shared_by_the_processes_that_have_them(platform: Platform, tmp_path: Path) -> None:
    async with Fleet(platform, tmp_path) as fleet, RemoteLog(platform.store_address) as log:
        # Given one process that has all of them, with work
        enough = asyncio.Event()
        fed = asyncio.create_task(feed(log, enough))
        first = fleet.start()
        await fleet.shared(first)
        # When others start
        second, third = fleet.start(), fleet.start()
        homes = await fleet.shared(first, second, third, by=2)
        # Then they have some
        assert max(Counter(homes.values()).values()) < len(FILES)
        # And when one is killed the others have them all
        os.kill(second, signal.SIGKILL)
        await fleet.shared(first, third)
        enough.set()
        # And nothing was lost, or ran twice at once
        counts = await fed
        async with asyncio.timeout(90):
            while True:
                found = judge((tmp_path / "journal").read_text().splitlines())
                if len(found.ended) == sum(counts):
                    break
                await asyncio.sleep(0.2)
        assert found.overlaps == set()


async def feed(log: RemoteLog, enough: asyncio.Event) -> list[int]:
    """Appends to all streams until it is told to stop. Returns how many it appended to each."""
    counts = [0] * len(FILES)
    while not enough.is_set():
        for at, name in enumerate(FILES):
            await log.append(name, 0, [Record(b'{"seconds": 0.01}')] * 2)
            counts[at] += 2
        await asyncio.sleep(0.3)
    return counts
