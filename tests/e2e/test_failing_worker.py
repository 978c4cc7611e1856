"""A worker on a machine where everything fails at once costs a few attempts, and not the function."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.wire.scheduler import SchedulerClient

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
FUNCTIONS = """
import asyncio, os
import tailrace

@tailrace.function(retry=tailrace.Retry(max_attempts=10, backoff="list", delays=("100ms",)))
async def read(n: int) -> int:
    if os.path.exists(os.environ.get("BROKEN", "/nonexistent")):
        raise OSError("the disk is broken")
    await asyncio.sleep(0.05)
    return n
"""


@asynccontextmanager
async def worker(folder: Path, platform: Platform, name: str, **environment: str) -> AsyncIterator[None]:
    config = folder / name
    config.mkdir()
    (config / "worker.yaml").write_text(f"executors: 1\nslots: 20\nname: {name}\n")
    process = await asyncio.create_subprocess_exec(
        *(*TAILRACE, "worker", str(folder / "disk.py"), "--config", str(config)),
        *("--scheduler", platform.scheduler_address, "--gateway", platform.gateway_address),
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.long(minutes=0.6)  # the rule over minutes is in tests/unit/scheduler/test_outliers.py
async def test_a_worker_with_a_broken_disk_is_found_out_and_comes_back(tmp_path: Path) -> None:
    # Given two workers, of which one has a disk that will break
    (tmp_path / "disk.py").write_text(FUNCTIONS)
    config = tmp_path / "configs"
    config.mkdir()
    (config / "scheduler.yaml").write_text("outlier_pause: 1s\n")
    platform = Platform(tmp_path / "data", [str(tmp_path / "disk.py")], config, worker={"executors": 1})
    await platform.start()
    inspector = SchedulerClient(platform.scheduler_address)
    broken = tmp_path / "broken"

    async def health() -> dict[str, set[str]]:
        workers = (await inspector.inspect()).workers
        return {each.name: {pool.health for pool in each.pools if not pool.alone} for each in workers}

    async def until(states: set[str]) -> None:
        async with asyncio.timeout(30):
            while (await health()).get("ill") != states:
                await asyncio.sleep(0.05)

    try:
        async with (
            worker(tmp_path, platform, "ill", BROKEN=str(broken)),
            tailrace.AsyncClient(platform.gateway_address) as client,
        ):
            await until({"in"})
            calls = [tailrace.Call("read", n=n) for n in range(200)]
            for handle in await client.submit_many(calls):
                await handle.result(timeout=60)
            # When it breaks while much is to be done, then the worker gets nothing any more, and all of it is done
            broken.touch()
            handles = await client.submit_many([tailrace.Call("read", n=n) for n in range(1000)])
            await until({"out"})
            assert [await handle.result(timeout=60) for handle in handles] == list(range(1000))
            assert not (await inspector.inspect()).clogged
            # And when it is mended, it is found out, and runs things again
            broken.unlink()
            async with asyncio.timeout(30):
                while (await health())["ill"] != {"in"}:
                    handles = await client.submit_many([tailrace.Call("read", n=n) for n in range(50)])
                    assert len([await handle.result(timeout=60) for handle in handles]) == 50
    finally:
        await inspector.close()
        await platform.stop()
