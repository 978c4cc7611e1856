"""Every listener is told nonsense: it answers with a sentence or hangs up, fails at nothing, and goes on serving.

`TAILRACE_FUZZ_CASES` and `TAILRACE_FUZZ_SEED` choose how many cases there are, and which.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import struct
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from scenes.fuzz_client import methods, spoken, told
from scenes.scheduler_place import SIZES

from tailrace.assembly.separate import SeparateDelay, SeparateGateway, SeparateStore
from tailrace.assembly.settings import ConfigDirectory
from tailrace.foundation import telemetry
from tailrace.foundation.listener_logs import set_filters
from tailrace.foundation.metrics_server import MetricsServer
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.server import SchedulerServer
from tailrace.wire.channel import dial
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.v1 import scheduler_pb2

ANY = "127.0.0.1:0"
CASES, SEED = int(os.environ.get("TAILRACE_FUZZ_CASES", "1000")), int(os.environ.get("TAILRACE_FUZZ_SEED", "1"))
TESTS = Path(__file__).parent.parent


@pytest.fixture
async def listeners(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """The address of each listener, by its service."""
    directory = ConfigDirectory(None)
    async with AsyncExitStack() as stack:

        async def running(part: Any) -> Any:
            await part.start()
            stack.push_async_callback(part.stop)
            return part

        store = await running(SeparateStore(tmp_path / "data", directory, ANY))
        gateway = await running(SeparateGateway(store.address, directory, ANY))
        delay = await running(SeparateDelay(store.address, directory, ANY))
        scheduler = await running(SchedulerServer(SchedulerConfig(listen=ANY, direct_listen=ANY), SIZES))

        async def samples() -> list[Any]:
            return []

        metrics = await running(MetricsServer(ANY, samples))
        yield {
            "gateway": gateway.address,
            "scheduler": scheduler.address,
            "store": store.address,
            "delay": delay.address,
            "direct": scheduler.direct_address.removeprefix("direct:"),
            "metrics": metrics.address,
        }


@pytest.fixture
def failures(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Failures of any part, by its log. Bytes that cannot be read are no failure: a part has a line for each."""
    caplog.set_level(logging.ERROR)
    set_filters()

    def found() -> list[str]:
        return [caplog.handler.format(each) for each in caplog.records if each.exc_info]

    return found


@pytest.fixture
def away(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines of parts that did not reach each other."""
    caplog.set_level(logging.WARNING)
    return lambda: [line for each in caplog.records if (line := each.getMessage()).endswith("trying again")]


@pytest.mark.timeout(3_000)
async def test_whatever_listeners_are_told_they_fail_at_nothing(
    listeners: dict[str, str], away: Callable[[], list[str]], failures: Callable[[], list[str]]
) -> None:
    # When a client tells them nonsense
    command = [sys.executable, "-m", "scenes.fuzz_client", json.dumps(listeners), str(CASES), str(SEED)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    client = await asyncio.create_subprocess_exec(*command, env=environment, stderr=asyncio.subprocess.PIPE)
    try:
        _, said = await client.communicate()
    finally:
        with suppress(ProcessLookupError):
            client.kill()
    # Then none failed at anything, the parts were there for each other, and each still serves
    assert not failures(), "\n".join(failures())[:5000]
    assert client.returncode == 0, said.decode()[-5000:]
    assert not away()
    async with GatewayClient(listeners["gateway"]) as operator:
        assert (await operator.overview()).queue is not None


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The log of a part, as parts set it up."""
    root = logging.getLogger()
    handlers, level, own = list(root.handlers), root.level, logging.getLogger("tailrace").level
    text = io.StringIO()
    telemetry.set_up("scheduler", stream=text, environment={"TAILRACE_LOG": "text"})
    yield text
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)
    logging.getLogger("tailrace").setLevel(own)


async def test_bytes_that_cannot_be_read_are_one_plain_line_of_the_log_each(
    listeners: dict[str, str], written: io.StringIO
) -> None:
    # Given a part that logs as parts do
    nonsense, unread = b"\xff\xff\xff", "bytes that cannot be read: "
    # When each listener is told what no message is
    async with dial(listeners["scheduler"]) as channel:
        for name in ("Explain", "AttachWorker"):
            method = next(each for each in methods(scheduler_pb2) if each.name == name)
            await told(channel, method, [nonsense])
    greeting = b"tailrace-direct/1 /tailrace.v1.Scheduler/AttachTailer"
    frames = b"".join(struct.pack(">IB", len(each), at) + each for at, each in enumerate((greeting, nonsense)))
    await spoken(listeners["direct"], frames)
    await spoken(listeners["metrics"], b"GET /me\0trics HTTP/1.1\r\nHost: x\r\n\r\n")
    # Then each is a warning of one line
    lines = written.getvalue().splitlines()
    assert [line.partition("warning: ")[2].partition("'")[0] for line in lines] == [
        f"{unread}/tailrace.v1.Scheduler/Explain: Error parsing message with type ",
        f"{unread}/tailrace.v1.Scheduler/AttachWorker: Error parsing message with type ",
        f"{unread}/tailrace.v1.Scheduler/AttachTailer: Error parsing message with type ",
        f"{unread}Error handling request from 127.0.0.1: 400, message: Invalid char in url path: b",
    ], lines
