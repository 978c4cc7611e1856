"""A tailer is killed over items that run at its scheduler, and its heir is with another one: it hears how they end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

from tailrace.assembly.free_port import free_port
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteCheckpoints, RemoteLog

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS = 20
TAILER = "name: long\nsource: {kind: log, stream: long}\nfunction: work\n"


@pytest.mark.long(minutes=0.5)
async def test_a_killed_tailer_is_followed_by_one_at_another_scheduler_and_nothing_runs_twice(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(TAILER)
    journal = tmp_path / "journal"
    journal.touch()
    environment = {"TAILRACE_TEST_JOURNAL": str(journal)}
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        environment=environment,
        worker={"slots": ITEMS, "executors": 1},
    )
    other = f"127.0.0.1:{free_port()}"
    processes: list[subprocess.Popen[bytes]] = []

    def begin(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tailrace.cli", *words]
        processes.append(subprocess.Popen(command, cwd=tmp_path, env=os.environ | environment))
        return processes[-1]

    def tailer(scheduler: str) -> subprocess.Popen[bytes]:
        stores = ("--store", platform.store_address, "--delay", platform.delay_address)
        return begin("tailer", "run", "long.yaml", "--scheduler", scheduler, *stores)

    await platform.start()
    try:
        # Given a second scheduler with a worker of its own
        begin("scheduler", "--listen", other, "--no-gateway")
        begin("worker", FUNCTIONS, "--scheduler", other, "--gateway", platform.gateway_address)
        # And a tailer whose items all run below the first one
        first = tailer(platform.scheduler_address)
        async with RemoteLog(platform.store_address) as log, RemoteCheckpoints(platform.store_address) as checkpoints:
            await log.append("long", 0, [Record(b'{"seconds": 10}')] * ITEMS)
            async with asyncio.timeout(60):
                while len(judge(journal.read_text().splitlines()).started) < ITEMS:
                    await asyncio.sleep(0.05)
            # When it is killed, and another one comes to the second scheduler
            first.kill()
            tailer(other)
            # Then all of them settle there
            async with asyncio.timeout(90):
                while (mark := (await checkpoints.load("long")).get("0")) is None or mark.position < ITEMS:
                    await asyncio.sleep(0.05)
        # And each ran once
        told = judge(journal.read_text().splitlines())
        assert (told.executions, len(told.ended)) == (ITEMS, ITEMS)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        await platform.stop()
