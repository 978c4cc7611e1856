"""Modules that are changed or broken below a worker that runs: it goes on with the files with which it started, and one
that can load nothing any more says so, and keeps no work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = """
import os
import tailrace
from helper import ANSWER

if os.path.exists(os.environ.get("NO_LICENCE", "")):
    raise RuntimeError("there is no licence for this machine")

@tailrace.function
async def ends_its_process() -> None:
    os._exit(3)

@tailrace.function
async def answers() -> str:
    return ANSWER
"""


@contextlib.asynccontextmanager
async def running(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Platform, tailrace.AsyncClient]]:
    """A platform whose worker runs the module of the folder."""
    monkeypatch.setenv("NO_LICENCE", str(folder / "no_licence"))
    (folder / "helper.py").write_text("ANSWER = 'old'\n")
    (folder / "tasks_broken.py").write_text(FUNCTIONS)
    worker = {"executors": 1, "suspects": 1}
    platform = Platform(folder / "data", [str(folder / "tasks_broken.py")], worker=worker, heartbeat=0.5)
    await platform.start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            yield platform, client
    finally:
        await platform.stop()


@pytest.mark.trust(point=9)
async def test_a_worker_runs_the_files_with_which_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, monkeypatch) as (_, client):
        # Given a worker of whose files one is broken, one another, and one gone
        assert await (await client.submit("answers")).result(timeout=30) == "old"
        (tmp_path / "tasks_broken.py").write_text("def (:\n")
        (tmp_path / "helper.py").unlink()
        # When its process has to be replaced
        with contextlib.suppress(tailrace.WorkloadFailed):
            await (await client.submit("ends_its_process")).result(timeout=30)
        # Then what was there at its start is run
        assert await (await client.submit("answers")).result(timeout=30) == "old"


@pytest.mark.trust(point=9)
async def test_a_worker_that_can_load_nothing_keeps_no_work_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (platform, client), GatewayClient(platform.gateway_address) as gateway:
        # Given a worker whose functions cannot be loaded any more, for a reason outside of its files
        (tmp_path / "no_licence").touch()
        killer = await client.submit("ends_its_process")
        # When work comes, then an alert says why nothing is done
        handles = await client.submit_many([tailrace.Call("answers") for _ in range(20)])
        async with asyncio.timeout(30):
            while not any("no licence" in alert.what for alert in (await gateway.overview()).alerts):
                await asyncio.sleep(0.1)
            # And the work waits in its queue, and is nobody's
            while {(await handle.status()).state for handle in handles} - {"new", "retriable_failure"}:
                await asyncio.sleep(0.1)
            # And once they can be loaded all of it is done, and the alert is over
            (tmp_path / "no_licence").unlink()
            assert [await handle.result() for handle in handles] == ["old"] * 20
            while any("no licence" in alert.what for alert in (await gateway.overview()).alerts):
                await asyncio.sleep(0.1)
        await killer.cancel()
