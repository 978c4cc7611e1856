"""A new version of a function is rolled out over its workers, one after the other, while it is called: no attempt is
lost or run again, and soon all that runs is new."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.wire.scheduler import SchedulerClient

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
WORKERS = 3
FUNCTION = """
import asyncio, os
import tailrace

@tailrace.function
async def price(ctx: tailrace.Context, n: int{more}) -> str:
    descriptor = os.open({journal!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{{n}} {{ctx.attempt}} {version}\\n".encode())
    os.close(descriptor)
    await asyncio.sleep(0.05)
    return {version!r}
"""


class Worker:
    """A worker process with one version of the function."""

    def __init__(self, folder: Path, platform: Platform, name: str, version: str) -> None:
        self._config = folder / name
        self._config.mkdir()
        (self._config / "worker.yaml").write_text(f"executors: 1\nslots: 10\nname: {name}\n")
        self._addresses = ("--scheduler", platform.scheduler_address, "--gateway", platform.gateway_address)
        self._module = folder / f"prices_{version}.py"
        self.name = name

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(*TAILRACE, "worker", str(self._module), "--config", str(self._config), *self._addresses),
            env={**os.environ},
        )

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
        assert await self._process.wait() == 0


async def test_a_new_version_of_a_function_is_rolled_out_without_losing_an_attempt(tmp_path: Path) -> None:
    # Given workers of the old version, which are called all the time
    journal = tmp_path / "journal"
    for version, more in (("old", ""), ("new", ", currency: str = 'EUR'")):
        text = FUNCTION.format(version=version, more=more, journal=str(journal))
        (tmp_path / f"prices_{version}.py").write_text(text)
    platform = Platform(tmp_path / "data", [], worker={"executors": 1})
    await platform.start()
    inspector = SchedulerClient(platform.scheduler_address)

    async def attached(*names: str) -> None:
        async with asyncio.timeout(30):
            while True:
                found = {each.name for each in (await inspector.inspect()).workers if each.pools}
                if {*names} <= found:
                    return
                await asyncio.sleep(0.05)

    try:
        async with AsyncExitStack() as stack, tailrace.AsyncClient(platform.gateway_address) as client:
            old = [Worker(tmp_path, platform, f"old-{n}", "old") for n in range(WORKERS)]
            new = [Worker(tmp_path, platform, f"new-{n}", "new") for n in range(WORKERS)]
            for each in old:
                await each.start()
                stack.push_async_callback(each.stop)
            await attached(*(each.name for each in old))
            calling = True
            handles = []

            async def call() -> None:
                while calling:
                    calls = [tailrace.Call("price", n=len(handles) + n) for n in range(20)]
                    handles.extend(await client.submit_many(calls))
                    await asyncio.sleep(0.1)

            caller = asyncio.create_task(call())
            # When each of them is replaced by one of the new version
            for before, after in zip(old, new, strict=True):
                await asyncio.sleep(0.5)
                await after.start()
                stack.push_async_callback(after.stop)
                await attached(after.name)
                await before.stop()
            await asyncio.sleep(0.5)
            calling = False
            await caller
            # Then every call was answered, by one attempt
            results = [await handle.result(timeout=30) for handle in handles]
            lines = [line.split() for line in journal.read_text().splitlines()]
            assert sorted(int(n) for n, _, _ in lines) == [*range(len(handles))]
            assert {attempt for _, attempt, _ in lines} == {"1"}
            # And old and new were at work together, and in the end the new one alone
            assert Counter(results).keys() == {"old", "new"}
            assert {*results[-20:]} == {"new"}
            assert await (await client.submit("price", n=-1, currency="USD")).result(timeout=30) == "new"
    finally:
        await inspector.close()
        await platform.stop()
