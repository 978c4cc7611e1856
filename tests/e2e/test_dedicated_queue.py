"""A dedicated queue: functions with a tailer and executors of their own, by configuration alone, run while their
neighbours fill everything else for good."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.platform import Platform

FUNCTIONS = """
import asyncio
import tailrace

async def run_for_ever():
    await asyncio.sleep(3600)

floods = [tailrace.function(name=f"flood-{n}", priority="interactive")(run_for_ever) for n in range(3)]
flood_0, flood_1, flood_2 = floods

@tailrace.function(priority="reporting")
async def charge(n: int) -> int:
    return n

@tailrace.function(priority="interactive")
async def greet() -> None: ...
"""


@pytest.mark.long(minutes=0.3)  # what its tailer does is in tests/integration/tailers/test_tailer_queue.py
async def test_a_dedicated_queue_is_not_delayed_by_flooded_neighbours(tmp_path: Path) -> None:
    # Given a function with a pool and a tailer of its own, all in files
    (tmp_path / "shop.py").write_text(FUNCTIONS)
    configs = tmp_path / "configs"
    (configs / "tailers").mkdir(parents=True)
    (configs / "worker.yaml").write_text("executors: 1\nslots: 4\npools: {critical: [charge]}\n")
    (configs / "tailers" / "critical.yaml").write_text(
        "name: critical\nsource: {kind: queue, functions: [charge]}\nresults: true\n"
    )
    platform = Platform(tmp_path / "data", [str(tmp_path / "shop.py")], configs, heartbeat=0.5)
    await platform.start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            # And neighbours at the highest priority that fill every other place, and all the credit, for good
            for n in range(3):
                await client.submit_many([tailrace.Call(f"flood-{n}") for _ in range(400)])
            await _settled(client)
            greeting = await client.submit("greet")
            # When it is called, at the lowest priority, then it runs, again and again
            for n in range(20):
                assert await (await client.submit("charge", n=n)).result(timeout=60) == n
            # While a function without such a queue waits
            assert not (await greeting.status()).ended
    finally:
        await platform.stop()


async def _settled(client: tailrace.AsyncClient) -> None:
    """Waits until no more is taken out of the queue: everything is full."""
    before, after = -1, 0
    while before != after or not after:
        await asyncio.sleep(0.3)
        before, after = after, len(await client.find(states=["enqueued", "processing"], limit=1000))
