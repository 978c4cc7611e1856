"""An outage with every process real: it is seen, copies little, is probed, and ends with nothing lost."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from scenes import commands

from tailrace.assembly.platform import Platform
from tailrace.model.overview import TailerOverview
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.scheduler import SchedulerClient

FUNCTIONS = '''
import os
import tailrace

BROKEN = os.environ["TAILRACE_TEST_BROKEN"]

@tailrace.function(retry=tailrace.Retry(backoff="list", delays=(0.2,), max_attempts=5))
async def charge(ctx: tailrace.Context, poison: bool = False) -> None:
    """Fails while the file is there; a poisoned item always fails its first attempt."""
    if os.path.exists(BROKEN):
        raise ConnectionError("the database is away")
    if poison and ctx.attempt == 1:
        raise ValueError("poison")
'''
ITEMS = 5000
PAYLOAD = b"{}" + b" " * 98
#: Items that an outage copies at most: docs/operating.md.
BOUND = 45


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "shop.py").write_text(FUNCTIONS)
    (tmp_path / "orders.yaml").write_text(
        "name: orders\nsource: {kind: log, stream: orders}\nfunction: charge\nstalled_after: 2s\n"
    )
    running = Platform(
        tmp_path / "data",
        [str(tmp_path / "shop.py")],
        tailers=[tmp_path / "orders.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_BROKEN": str(tmp_path / "broken")},
    )
    try:
        await running.start()
        yield running
        await running.drain(10)
    finally:
        await running.stop()


async def test_an_outage_of_seconds_is_seen_bounded_and_over_with_nothing_lost(
    platform: Platform, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    async with RemoteLog(platform.store_address) as log, GatewayClient(platform.gateway_address) as gateway:
        # Given a function of which everything fails
        await log.append("orders", 0, [Record(PAYLOAD)] * ITEMS)
        await until(lambda: state_is(gateway, "clogged"))
        before = await orders(gateway)
        # When that lasts for seconds
        await until(lambda: unhealthy(gateway))
        during = await orders(gateway)
        # Then no more is copied than stated, and everybody can see what is wrong
        assert before.parked <= during.parked <= BOUND
        assert during.settled == 0
        assert (during.cause, during.state) == ("clogged", "clogged")
        assert "the database is away" in during.why and during.since > 0
        client = SchedulerClient(platform.scheduler_address)
        [clogged] = (await client.inspect()).clogged
        await client.close()
        assert (clogged.function, clogged.since) == ("charge", during.since)
        check = await asyncio.to_thread(listed, platform)
        assert check.returncode == 1 and "charge is clogged" in check.stderr
        assert {row["name"]: row["healthy"] for row in json.loads(check.stdout)}["orders"] is False
        assert await health(platform, "tailrace.Tailers/orders") == health_pb2.HealthCheckResponse.NOT_SERVING
        # And when it works again, the flow resumes and every item ends
        broken.unlink()
        await until(lambda: done(gateway, ITEMS))
        after = await orders(gateway)
        assert (after.parked, after.dead) == (during.parked, 0)
        assert (after.state, after.since) == ("running", 0)
        await until(lambda: health_is_well(platform))
        assert (await asyncio.to_thread(listed, platform)).returncode == 0


async def test_one_item_in_a_hundred_that_fails_freezes_nothing(platform: Platform) -> None:
    records = [Record(b'{"poison": true}' if number % 100 == 7 else b"{}") for number in range(ITEMS)]
    async with RemoteLog(platform.store_address) as log, GatewayClient(platform.gateway_address) as gateway:
        await log.append("orders", 0, records)
        await until(lambda: done(gateway, ITEMS))
        assert (await orders(gateway)).parked == ITEMS // 100
        client = SchedulerClient(platform.scheduler_address)
        reasons = {each.reason for each in (await client.inspect()).reasons}
        await client.close()
        assert "outage" not in reasons


def listed(platform: Platform) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TAILRACE_GATEWAY": platform.gateway_address}
    return commands.tailrace("tailer", "list", "--check", "--json", env=environment)


async def health(platform: Platform, service: str) -> int:
    async with grpc.aio.insecure_channel(platform.gateway_address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return int((await stub.Check(health_pb2.HealthCheckRequest(service=service))).status)


async def health_is_well(platform: Platform) -> bool:
    return await health(platform, "tailrace.Tailers") == health_pb2.HealthCheckResponse.SERVING


async def orders(gateway: GatewayClient) -> TailerOverview:
    overview = await gateway.overview()
    return next((each for each in overview.tailers if each.name == "orders"), TailerOverview("orders", "", ""))


async def state_is(gateway: GatewayClient, state: str) -> bool:
    return (await orders(gateway)).state == state


async def unhealthy(gateway: GatewayClient) -> bool:
    return not (await orders(gateway)).healthy


async def done(gateway: GatewayClient, count: int) -> bool:
    """Whether every item has ended, also those that came back by the delay service."""
    overview = await gateway.overview()
    ended = {each.name: each.settled for each in overview.tailers}
    tailer = await orders(gateway)
    return ended.get("orders", 0) + tailer.parked == count and ended.get("due", 0) >= tailer.parked


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(40):
        while not await true():
            await asyncio.sleep(0.05)
