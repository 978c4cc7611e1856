"""Tailers that run apart, over served stores, have a part in replays as those of a node: the gateway only writes and
reads rows. The process that reads one is killed; by the journal of the functions each item ran, none twice at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

from tailrace.assembly.platform import Platform
from tailrace.model.errors import InvalidRequest
from tailrace.model.replay import Bound, ReplayOrder
from tailrace.model.seek import END, START
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteCheckpoints, RemoteLog
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS = 200
LIVE = "name: orders\nsource: {kind: log, stream: orders}\nfunction: work\nwindow: {items: 20}\n"


async def test_a_replay_runs_where_its_tailer_runs_and_outlives_the_process_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(LIVE)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "leases.yaml").write_text("heartbeat: 0.5s\n")
    journal = tmp_path / "journal"
    journal.touch()
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
        worker={"executors": 1},
    )
    processes: list[subprocess.Popen[bytes]] = []

    def ended(name: str) -> set[str]:
        return {id for id in judge(journal.read_text().splitlines()).ended if id.startswith(f"{name}/")}

    await platform.start()
    try:
        addresses = {
            "--scheduler": platform.scheduler_address,
            "--delay": platform.delay_address,
            "--store": platform.store_address,
            "--config": str(tmp_path / "config"),
        }
        command = [sys.executable, "-m", "tailrace.cli", "tailer", "run", "orders.yaml"]
        command += [word for pair in addresses.items() for word in pair]
        # Given two processes with a tailer that is done with its stream
        for _ in range(2):
            processes.append(subprocess.Popen(command, cwd=tmp_path))  # noqa: ASYNC220 - takes a millisecond
        async with RemoteLog(platform.store_address) as log, RemoteCheckpoints(platform.store_address) as checkpoints:
            await log.append("orders", 0, [Record(b'{"seconds": 0.01}') for _ in range(ITEMS)])
            async with asyncio.timeout(60):
                while (mark := (await checkpoints.load("orders")).get("0")) is None or mark.position < ITEMS:
                    await asyncio.sleep(0.05)
        async with GatewayClient(platform.gateway_address) as gateway:
            # When its past is asked for through the gateway, which has no such tailer beside it
            order = ReplayOrder("orders", Bound(edge=START), Bound(edge=END), rate=40.0, who="ann@host")
            assert (await gateway.start_replay(order._replace(dry_run=True))).items == ITEMS
            begun = await gateway.start_replay(order)
            async with asyncio.timeout(60):
                while len(ended(begun.name)) < ITEMS // 4:
                    await asyncio.sleep(0.05)
            # And the process that reads it is killed
            [view] = await gateway.replays(begun.number)
            [told] = (await gateway.overview()).replays
            assert (told.name, told.state, told.items) == (begun.name, "running", ITEMS)
            [reader] = [each for each in processes if f"the process {each.pid} on" in view.detail]
            os.kill(reader.pid, signal.SIGKILL)
            # Then the other one goes on with it, and it comes to its end
            async with asyncio.timeout(60):
                while view.state != "done":
                    await asyncio.sleep(0.1)
                    [view] = await gateway.replays(begun.number)
            assert view.counts == {"succeeded": ITEMS}
            with pytest.raises(InvalidRequest, match="there is no item to run"):
                await gateway.start_replay(order._replace(only="failed"))
        assert ended(begun.name) == {f"{begun.name}/0/{n}" for n in range(ITEMS)}
        assert judge(journal.read_text().splitlines()).overlaps == set()
    finally:
        for process in processes:
            process.kill()
            process.wait()
        await platform.stop()
