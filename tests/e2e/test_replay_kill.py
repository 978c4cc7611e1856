"""The node is killed in the middle of a replay. By the journal of the functions each item of it ran, none twice at
once, none beside the live one; and the live tailer went on where it was."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

from tailrace.assembly.platform import Platform
from tailrace.model.errors import Unavailable
from tailrace.model.replay import Bound, ReplayOrder
from tailrace.model.seek import END
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteCheckpoints, RemoteLog
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS, FROM, PARTITIONS = 300, 100, 2
LIVE = "name: orders\nsource: {kind: log, stream: orders}\nfunction: work\nwindow: {items: 40}\n"


async def test_a_kill_in_the_middle_of_a_replay_loses_nothing_and_leaves_the_live_checkpoint_alone(
    tmp_path: Path,
) -> None:
    (tmp_path / "orders.yaml").write_text(LIVE)
    journal = tmp_path / "journal"
    journal.touch()
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "orders.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
        worker={"executors": 1},
    )

    def ended(name: str) -> set[str]:
        return {id for id in judge(journal.read_text().splitlines()).ended if id.startswith(f"{name}/")}

    async def until(name: str, count: int) -> None:
        async with asyncio.timeout(60):
            while len(ended(name)) < count:
                await asyncio.sleep(0.05)

    async def checkpoint() -> dict[str, int]:
        async with RemoteCheckpoints(platform.store_address) as checkpoints:
            return {name: mark.position for name, mark in (await checkpoints.load("orders")).items()}

    await platform.start()
    try:
        # Given a live tailer that is done with two partitions, of which an item now and then failed at first
        async with RemoteLog(platform.store_address) as log:
            await log.create("orders", PARTITIONS)
            for partition in range(PARTITIONS):
                records = [
                    Record(b'{"seconds": 0.02, "fail_first": 1}' if n % 40 == 7 else b'{"seconds": 0.02}')
                    for n in range(ITEMS)
                ]
                await log.append("orders", partition, records)
        await until("orders", PARTITIONS * ITEMS)
        async with asyncio.timeout(30):
            while await checkpoint() != {"0": ITEMS, "1": ITEMS}:
                await asyncio.sleep(0.05)
        # When a part of one of them is run again, and the node is killed in the middle
        order = ReplayOrder("orders", Bound(FROM), Bound(edge=END), partition="1", rate=200.0, why="a kill")
        async with GatewayClient(platform.gateway_address) as gateway, asyncio.timeout(30):
            # … once each row says that its item is over: what still waits to run again is left out of a replay
            while (await gateway.start_replay(order._replace(dry_run=True))).items < ITEMS - FROM:
                await asyncio.sleep(0.05)
            begun = await gateway.start_replay(order)
        assert begun.items == ITEMS - FROM
        await until(begun.name, begun.items // 3)
        node = platform.pids()["node"]
        assert node is not None
        os.kill(node, signal.SIGKILL)
        # Then it goes on by itself and comes to its end
        async with asyncio.timeout(60), GatewayClient(platform.gateway_address) as gateway:
            state = ""
            while state != "done":
                await asyncio.sleep(0.1)
                try:
                    [view] = await gateway.replays(begun.number)
                except Unavailable:
                    continue
                state = view.state
        assert view.ended == view.items == sum(view.counts.values())
        assert set(view.counts) <= {"succeeded", "done after a delay"}
        # And nothing was lost, nothing ran twice at once, in either of them
        verdict = judge(journal.read_text().splitlines())
        assert ended(begun.name) == {f"{begun.name}/1/{n}" for n in range(FROM, ITEMS)}
        assert verdict.overlaps == set()
        # And the live tailer is where it was, and reads on
        assert await checkpoint() == {"0": ITEMS, "1": ITEMS}
        live = ended("orders")
        async with RemoteLog(platform.store_address) as log:
            await log.append("orders", 1, [Record(b"{}")])
        await until("orders", len(live) + 1)
        assert ended("orders") - live == {f"orders/1/{ITEMS}"}
    finally:
        await platform.stop()
