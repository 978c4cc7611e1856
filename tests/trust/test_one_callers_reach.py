"""One caller takes no more than its part: of the requests to receivers, and of the gateway's time."""

from __future__ import annotations

import asyncio
import base64
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path

import pytest
from aiohttp import web

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.foundation.telemetry import set_up
from tailrace.model.errors import InvalidRequest
from tailrace.model.job import JobSpec, TreeSpec
from tailrace.sdk import job_calls
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = """
import tailrace

@tailrace.function
async def add(a: int, b: int) -> int:
    return a + b
"""
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "sums.py").write_text(FUNCTIONS)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "gateway.yaml").write_text(
        f"callbacks: {{secrets: ['{SECRET}'], allow: [127.0.0.0/8], timeout: 60s}}\n"
    )
    platform = Platform(tmp_path / "data", [str(tmp_path / "sums.py")], tmp_path / "configs", worker={"executors": 1})
    await platform.start()
    try:
        yield platform
    finally:
        await platform.stop()


@pytest.mark.trust(point=14)
async def test_a_receiver_that_is_silent_leaves_others_theirs(platform: Platform) -> None:
    # Given a receiver that takes connections and never answers, and one that answers
    begun, told = asyncio.Semaphore(0), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.release()
        await reader.read()
        writer.close()

    async def heard(_: web.Request) -> web.Response:
        told.set()
        return web.Response(status=204)

    mute = await asyncio.start_server(silent, "127.0.0.1", 0)
    application = web.Application()
    application.router.add_post("/{any:.*}", heard)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            # When many ends are to be told to the silent one, and it has the first of them
            nowhere = f"http://127.0.0.1:{mute.sockets[0].getsockname()[1]}/end"
            for _ in range(40):
                await client.submit("add", a=1, b=2, on_done=nowhere)
            async with asyncio.timeout(20):
                for _ in range(8):
                    await begun.acquire()
            # Then one that is told to the other is told soon
            await client.submit("add", a=1, b=2, on_done=f"http://127.0.0.1:{runner.addresses[0][1]}/end")
            async with asyncio.timeout(15):
                await told.wait()
    finally:
        mute.close()
        await runner.cleanup()


@pytest.mark.trust(point=14)
async def test_a_job_with_a_million_parents_stalls_nobody(platform: Platform) -> None:
    # Given a tree of 256 jobs, the last of which names a parent hundreds of thousands of times
    jobs = [JobSpec("root", "add"), *(JobSpec(f"job{number}", "add", ("root",)) for number in range(254))]
    jobs.append(JobSpec("last", "add", ("job253",) * 700_000))
    began: queue.SimpleQueue[float] = queue.SimpleQueue()
    slowest, over = 0.0, threading.Event()

    def ask() -> None:
        nonlocal slowest
        with tailrace.Client(platform.gateway_address, timeout=60) as client:
            id = client.submit("add", a=1, b=2).id
            began.put(time.monotonic())
            while not over.is_set():
                asked = time.monotonic()
                client.status(id)
                slowest = max(slowest, time.monotonic() - asked)

    # When it is asked for, while others ask for something
    asking = asyncio.create_task(asyncio.to_thread(ask))
    await asyncio.to_thread(began.get)
    async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as caller:
        with pytest.raises(InvalidRequest, match="job 'last'"):
            await caller._run(job_calls.create(caller._talk, TreeSpec("job-1", "many", jobs)))
    over.set()
    await asking
    # Then they wait no longer than for the message to be read
    assert 0 < slowest < 3.0


@pytest.mark.trust(point=15)
def test_the_text_of_a_caller_makes_no_lines_of_its_own_in_a_log() -> None:
    written = StringIO()
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        set_up("gateway", stream=written, environment={"TAILRACE_LOG": "text"})
        logging.getLogger("tailrace.test").warning("somebody said %s", "x\n12:00:00.000 gateway all is well\x1b[2J")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    [line] = written.getvalue().splitlines()
    assert line.endswith("somebody said x\\n12:00:00.000 gateway all is well\\x1b[2J")


@pytest.mark.trust(point=15)
async def test_the_password_in_a_receivers_address_is_in_no_log(
    platform: Platform, capfd: pytest.CaptureFixture[str]
) -> None:
    # Given a receiver that refuses, whose address is its password, as that of many chat programs
    refused = asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        refused.set()
        return web.Response(status=410)

    application = web.Application()
    application.router.add_post("/{any:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            address = f"http://127.0.0.1:{runner.addresses[0][1]}/services/T0/hunter2"
            # When it is told of an end, and the callback is a dead letter
            await client.submit("add", a=1, b=2, on_done=address)
            async with asyncio.timeout(20), GatewayClient(platform.gateway_address) as operator:
                await refused.wait()
                while not (page := await operator.dead_letters()).letters:
                    await asyncio.sleep(0.05)
            # Then the letter's reason and the log name the host alone
            assert "127.0.0.1" in page.letters[0].reason and "hunter2" not in page.letters[0].reason
            assert "hunter2" not in capfd.readouterr().err
    finally:
        await runner.cleanup()
