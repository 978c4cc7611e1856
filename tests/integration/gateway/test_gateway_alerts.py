"""`tailrace alerts` and `tailrace queue` over a running gateway: levels that are passed, and refusals."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from tailrace.cli import app
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.server import GatewayServer
from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import Overloaded
from tailrace.sdk.async_client import AsyncClient
from tailrace.wire.gateway import GatewayClient

from ...servers.fickle_queue import FickleQueue

SOON = GatewayConfig.model_validate(
    {
        "listen": "127.0.0.1:0",
        "look_every": "20ms",
        "service_levels": {"interactive": {"wait": "10ms", "attempts": 0}},
    }
)


async def run(*arguments: str) -> tuple[int, str]:
    """A command's exit code and output; in a thread, since it has an event loop of its own."""
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    return result.exit_code, result.stdout


async def test_alerts_say_what_is_beyond_its_level_until_it_is_not(stores: Any) -> None:
    gateway = GatewayServer(SOON, stores)
    await gateway.start()
    there = ("--gateway", gateway.address)
    try:
        async with AsyncClient(gateway.address, timeout=2) as client, GatewayClient(gateway.address) as operator:
            # Given nothing to look at
            assert await run("alerts", *there) == (0, "nothing to look at\n")
            # When an interactive workload waits for longer than it may
            handle = await client.submit("add", a=1, priority="interactive")
            while not (await operator.overview()).alerts:
                await asyncio.sleep(0.005)
            # Then that is told, and the exit code says so
            code, out = await run("alerts", "--json", *there)
            [alert] = json.loads(out)
            assert (code, alert["code"], alert["subject"]) == (1, "waiting", "interactive")
            assert "add" in alert["what"]
            code, out = await run("alerts", *there)
            assert code == 1
            assert out.startswith("waiting (interactive) since 20")
            # When it fails, then its attempt is told instead
            demand = Demand({Cell("add", 0): 1}, frozenset(), 1, 1 << 20)
            leased = await stores.queue.lease(demand, 30, 5)
            back = Settle(handle.id, leased.fence, State.RETRIABLE_FAILURE, delay=3600, attempts=1)
            await stores.queue.settle(leased.fence, [], [back])
            assert [each.code for each in (await operator.overview()).alerts] == ["attempts"]
            code, out = await run("queue", *there)
            assert code == 0
            assert "1 retriable_failure" in out
            assert "queue: 1 waiting" in out
            told = json.loads((await run("queue", "--json", *there))[1])
            assert told["levels"][0]["attempts_by"] == "add"
            # When it is cancelled, then nothing is left to look at
            assert await client.cancel(handle.id) == "cancelled"
            assert (await run("alerts", *there))[0] == 0
    finally:
        await gateway.stop()


async def test_refused_submissions_are_an_alert(stores: Any) -> None:
    queue: Any = FickleQueue(stores.queue)
    gateway = GatewayServer(SOON, replace(stores, queue=queue))
    await gateway.start()
    try:
        async with GatewayClient(gateway.address) as operator, AsyncClient(gateway.address, timeout=2) as client:
            # Given a queue that is full
            queue.trouble = "full"
            with pytest.raises(Overloaded):
                await client.submit("add", a=1)
            # Then that is told, with the bound and since when
            [alert] = (await operator.overview()).alerts
            assert (alert.code, alert.subject) == ("refusing", "submissions")
            assert "at most 9" in alert.what
            assert alert.since > 0
    finally:
        await gateway.stop()
