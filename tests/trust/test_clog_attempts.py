"""A function that asks for another try is not broken, and one whose second attempts are well works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace import AsyncClient, Call
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.scheduler import SchedulerClient

FUNCTIONS = '''
import tailrace

RETRY = tailrace.Retry(backoff="list", delays=(1.0,), max_attempts=5)

@tailrace.function(retry=RETRY)
async def poll(ctx: tailrace.Context) -> None:
    """Looks once whether something is ready, and again a second later."""
    if ctx.attempt == 1:
        raise tailrace.RetryLater("not ready yet", after="1s")

@tailrace.function(retry=RETRY)
async def cold(ctx: tailrace.Context) -> None:
    """Fails the first time, always, and is well the second time."""
    if ctx.attempt == 1:
        raise ConnectionError("nothing is warm yet")
'''
ITEMS = {"poll": 300, "cold": 120}


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "shop.py").write_text(FUNCTIONS)
    tailers = []
    for function in ("poll", "cold"):
        tailers.append(tmp_path / f"{function}s.yaml")
        tailers[-1].write_text(f"name: {function}s\nsource: {{kind: log, stream: {function}s}}\nfunction: {function}\n")
    running = Platform(
        tmp_path / "data", [str(tmp_path / "shop.py")], tailers=tailers, heartbeat=0.5, worker={"slots": 4}
    )
    try:
        await running.start()
        yield running
        await running.drain(10)
    finally:
        await running.stop()


@pytest.mark.trust(point=8)
async def test_a_queue_whose_items_are_well_the_second_time_goes_on(platform: Platform) -> None:
    # Given workloads of which every first attempt fails, and every second one is well
    async with AsyncClient(platform.gateway_address) as client, GatewayClient(platform.gateway_address) as gateway:
        handles = await client.submit_many([Call("cold") for _ in range(ITEMS["cold"])])
        # When they run, then due retries get their turn as probes, so that most are done within seconds, not hours; the
        # others failed while the function was frozen, and wait for half a minute each
        async with asyncio.timeout(30):
            while await done(gateway, [handle.id for handle in handles]) < ITEMS["cold"] * 2 // 3:
                await asyncio.sleep(0.1)


@pytest.mark.trust(point=8)
async def test_who_asks_for_another_try_freezes_nothing(platform: Platform) -> None:
    # Given workloads of which every first attempt asks for another one
    async with AsyncClient(platform.gateway_address) as client, GatewayClient(platform.gateway_address) as gateway:
        handles = await client.submit_many([Call("poll") for _ in range(ITEMS["poll"])])
        scheduler = SchedulerClient(platform.scheduler_address)
        # When they run, then their function is not taken for broken, and all end within seconds
        async with asyncio.timeout(30):
            while await done(gateway, [handle.id for handle in handles]) < len(handles):
                assert not (await scheduler.inspect()).clogged
                await asyncio.sleep(0.1)
        await scheduler.close()


@pytest.mark.trust(point=8)
@pytest.mark.parametrize("function", ["poll", "cold"])
async def test_a_stream_whose_items_are_well_the_second_time_is_soon_at_its_end(
    platform: Platform, function: str
) -> None:
    async with RemoteLog(platform.store_address) as log, GatewayClient(platform.gateway_address) as gateway:
        # Given a stream of which every first attempt asks for another one, or fails, and every second one is well
        await log.append(f"{function}s", 0, [Record(b"{}")] * ITEMS[function])
        scheduler = SchedulerClient(platform.scheduler_address)
        # When it is read, then every item ends by its second attempt; one that was asked for is no sign of an outage
        async with asyncio.timeout(30):
            while await due(gateway) < ITEMS[function]:
                assert function == "cold" or not (await scheduler.inspect()).clogged
                await asyncio.sleep(0.1)
        await scheduler.close()


async def done(gateway: GatewayClient, ids: list[str]) -> int:
    return sum(status is not None and status.state == "success" for status in await gateway.status(ids))


async def due(gateway: GatewayClient) -> int:
    """Number of items that came back from the delay service and ended."""
    return sum(each.settled for each in (await gateway.overview()).tailers if each.name == "due")
