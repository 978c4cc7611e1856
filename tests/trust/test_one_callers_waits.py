"""Waits of one caller, and for one receiver, take no more than their part."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes.token_door import Door

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.model.errors import Overloaded
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = """
import tailrace

@tailrace.function
async def add(a: int, b: int) -> int:
    return a + b
"""
TICKS = os.sysconf("SC_CLK_TCK")

pytestmark = pytest.mark.trust(point=14)


async def test_a_collector_that_hangs_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    # Given a collector that takes what is sent and answers nobody
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readline()).startswith(b"POST /v1/metrics"):
            asked.set()
        await reader.read()
        writer.close()

    collector = await asyncio.start_server(silent, "127.0.0.1", 0)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "gateway.yaml").write_text("listen: 127.0.0.1:0\n")
    environment = {
        **os.environ,
        "TAILRACE_RUN_DIR": str(tmp_path / "run"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.sockets[0].getsockname()[1]}",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
    }
    configured = "--config", str(tmp_path / "configs"), "--data", str(tmp_path / "data")
    node = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tailrace.cli", "node", *configured), stderr=DEVNULL, env=environment
    )
    try:
        # When a node is told to end while it sends its metrics
        async with asyncio.timeout(30):
            await asked.wait()
        told = time.monotonic()
        node.terminate()
        # Then it has ended soon
        async with asyncio.timeout(30):
            await node.wait()
        assert time.monotonic() - told < 6
    finally:
        if node.returncode is None:
            node.kill()
        await node.wait()
        collector.close()


@pytest.fixture
async def platform(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    (tmp_path / "sums.py").write_text(FUNCTIONS)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "gateway.yaml").write_text(getattr(request, "param", "listen: 127.0.0.1:0\n"))
    platform = Platform(tmp_path / "data", [str(tmp_path / "sums.py")], tmp_path / "configs", worker={"executors": 1})
    await platform.start()
    try:
        yield platform
    finally:
        await platform.stop()


def spent(pid: int) -> float:
    """Seconds of a processor that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def test_many_waits_for_jobs_take_no_processor(platform: Platform) -> None:
    # Given three hundred open jobs, and five waits for each
    async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
        jobs = [client.job("sums", "add") for _ in range(300)]
        for job in jobs:
            await job.add_many([])
        waits = [asyncio.create_task(job.wait(120)) for job in jobs for _ in range(5)]
        # When nothing happens, then the node rests soon
        async with asyncio.timeout(15):
            node, share = platform.pids()["node"], 1.0
            while share > 0.3:
                before, began = spent(node), time.monotonic()
                await asyncio.sleep(1.0)
                share = (spent(node) - before) / (time.monotonic() - began)
        # And those whose job ends hear of it, and no others
        await jobs[7].seal()
        async with asyncio.timeout(10):
            done = await asyncio.gather(*waits[35:40])
        assert [each.state for each in done] == ["complete"] * 5
        assert not any(each.done() for each in waits[:35] + waits[40:])
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


@pytest.mark.parametrize("platform", ["listen: 127.0.0.1:0\nwaiting_results: 1\n"], indirect=True)
async def test_more_waits_for_jobs_than_a_gateway_allows_are_refused(platform: Platform) -> None:
    async with tailrace.AsyncClient(platform.gateway_address, timeout=0.1) as client:
        job = client.job("sums", "add")
        await job.add_many([])
        ends = await asyncio.gather(*(job.wait(0.5) for _ in range(2)), return_exceptions=True)
    assert {type(end) for end in ends} == {Overloaded, TimeoutError}


async def test_a_page_of_jobs_looks_at_no_more_than_it_may_show(door: Door) -> None:
    # Given a job of a caller, behind thirty of others
    with door.fleet.as_(door.fleet.issue("client")):
        async with tailrace.AsyncClient(door.server.address) as client:
            for function in ("send_email", *["add"] * 30):
                await client.job(function, function).add_many([])
    with door.as_(await door.made("read:send_email")) as address:
        async with GatewayClient(address) as caller:
            # When it asks for pages of ten, then each looks at ten, and says behind which to go on
            found: list[list[str]] = []
            after, pages = "", 0
            while pages == 0 or after:
                page = await caller.job_page("", after, 10)
                found.append([each.type for each in page.trees])
                after, pages = page.after, pages + 1
            assert found == [[], [], [], ["send_email"]]
