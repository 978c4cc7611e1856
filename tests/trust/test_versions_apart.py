"""Two versions of a function that take different arguments, side by side as while a new one is rolled out: each item is
run by the version that it fits."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.wire.scheduler import SchedulerClient

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
FUNCTION = """
import tailrace

@tailrace.function
async def price(n: int{more}) -> str:
    return {version!r}
"""
VERSIONS = {"old": "", "new": ", currency: str"}


@pytest.mark.trust(point=9)
async def test_items_of_two_versions_that_take_different_arguments_all_succeed(tmp_path: Path) -> None:
    # Given a worker of a version, and one of the next, which wants an argument more and takes no fewer
    platform = Platform(tmp_path / "data", [], worker={"executors": 1})
    await platform.start()
    inspector = SchedulerClient(platform.scheduler_address)
    addresses = ("--scheduler", platform.scheduler_address, "--gateway", platform.gateway_address)
    try:
        async with AsyncExitStack() as stack, tailrace.AsyncClient(platform.gateway_address) as client:
            for version, more in VERSIONS.items():
                config = tmp_path / version
                config.mkdir()
                (config / "worker.yaml").write_text(f"executors: 1\nslots: 10\nname: {version}\n")
                module = tmp_path / f"prices_{version}.py"
                module.write_text(FUNCTION.format(more=more, version=version))
                command = (*TAILRACE, "worker", str(module), "--config", str(config), *addresses)
                process = await asyncio.create_subprocess_exec(*command, env={**os.environ})
                stack.push_async_callback(process.wait)
                stack.callback(process.terminate)
                async with asyncio.timeout(30):
                    while version not in {each.name for each in (await inspector.inspect()).workers if each.pools}:
                        await asyncio.sleep(0.05)
            # When calls for the one and for the other come mixed
            calls = [
                tailrace.Call("price", n=n) if n % 2 else tailrace.Call("price", n=n, currency="EUR")
                for n in range(200)
            ]
            handles = await client.submit_many(calls)
            # Then each is answered by the version that it fits, and the function is not broken
            async with asyncio.timeout(30):
                results = [await handle.result() for handle in handles]
            assert results == ["new", "old"] * 100
            assert not (await inspector.inspect()).clogged
    finally:
        await inspector.close()
        await platform.stop()
