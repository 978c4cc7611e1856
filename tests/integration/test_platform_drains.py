"""A platform that drains: runs that go on are stopped and told, and no part is killed."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import tailrace
from tailrace.assembly.platform import Platform

FUNCTIONS = """
import asyncio
from pathlib import Path

import tailrace


@tailrace.function
async def runs_on(note: str) -> None:
    Path(note).touch()
    await asyncio.Event().wait()
"""


async def test_a_platform_with_a_run_that_goes_on_drains_in_order(tmp_path: Path) -> None:
    # Given a platform whose runs get half a second when it ends, and a run that does not end
    functions, note = tmp_path / "running_on.py", tmp_path / "note"
    functions.write_text(FUNCTIONS)
    worker = {"executors": 1, "grace": 0.5}
    platform = Platform(tmp_path / "data", [str(functions)], heartbeat=0.5, worker=worker)
    try:
        await platform.start()
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            await client.submit("runs_on", note=str(note))
        async with asyncio.timeout(30):
            while not note.exists():
                await asyncio.sleep(0.02)
        # When it is told to end, Then it has ended long before the usual 30 s
        async with asyncio.timeout(20):
            await platform.drain(math.inf)
        # And each part by itself: the run was told as lost, so that nobody waited for it
        kept = (platform._node, platform._worker, platform._scheduler)
        assert [each.child.process.returncode for each in kept if each.child is not None] == [0, 0, 0]
    finally:
        await platform.stop()
