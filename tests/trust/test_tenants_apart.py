"""Tenants do not meet: the same name of two of them is two names, and each room leaves the others theirs."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from scenes.gateway_process import open_stores
from scenes.spool_door import SpoolDoor
from scenes.token_door import Door

from tailrace import Call
from tailrace.assembly.platform import Platform
from tailrace.model.errors import Conflict, Overloaded
from tailrace.model.function_spec import FunctionSpec
from tailrace.sdk.async_client import AsyncClient
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.v1 import gateway_pb2 as pb

TENANTS = ("acme", "beta")
pytestmark = pytest.mark.trust(point=12)


async def secrets_of(door: Door) -> dict[str, str]:
    """A token of each tenant."""
    rights = ("submit", "read", "operate")
    return {each: await door.made(*(f"{right}:add@{each}" for right in rights), name=each) for each in TENANTS}


async def test_a_dedupe_key_swallows_no_other_tenants_submission(door: Door) -> None:
    # Given two tenants that call something the same
    mine: dict[str, str] = {}
    for tenant, secret in (await secrets_of(door)).items():
        with door.as_(secret) as address:
            async with AsyncClient(address) as client:
                # When each submits it, and once more
                first = await client.submit("add", a=1, tenant=tenant, dedupe_key="welcome-ann")
                again = await client.submit("add", a=1, tenant=tenant, dedupe_key="welcome-ann")
                # Then each has one workload, its own, which it may read
                assert (first.duplicate, again.duplicate, again.id) == (False, True, first.id)
                assert (await client.status(first.id)).function == "add"
                mine[tenant] = first.id
    assert len({*mine.values()}) == 2


async def test_a_key_lets_no_tenant_wait_for_another(door: Door) -> None:
    # Given an item of one tenant, with a key
    ids: dict[str, list[str]] = {}
    for tenant, secret in (await secrets_of(door)).items():
        with door.as_(secret) as address:
            # When each tenant submits two with that key
            async with AsyncClient(address) as client:
                ids[tenant] = [(await client.submit("add", a=1, tenant=tenant, key="ann")).id for _ in range(2)]
            async with GatewayClient(address) as caller:
                first, second = [await caller.call("Peek", pb.PeekRequest(id=each)) for each in ids[tenant]]
            # Then its second waits for its first alone, and shows the key as it was given
            assert (first.behind, second.behind) == ("", ids[tenant][0])
            assert (first.key, second.key) == ("ann", "ann")


async def test_a_job_takes_no_other_tenants_key(door: Door) -> None:
    for tenant, secret in (await secrets_of(door)).items():
        with door.as_(secret) as address:
            async with AsyncClient(address) as client:
                # When each tenant makes a job of one key, then it has it
                status = await client.job("import", "add", tenant=tenant, key="2026-11").seal()
                assert status.key == "2026-11"
                # And another job of its own has not
                with pytest.raises(Conflict, match="has the key '2026-11' already"):
                    await client.job("import", "add", tenant=tenant, key="2026-11").seal()


async def test_a_dedupe_key_swallows_nothing_while_the_store_is_away_either(stores: Any, tmp_path: Path) -> None:
    # Given a gateway whose store is away
    door = await SpoolDoor(stores, tmp_path / "spool").open()
    try:
        door.queue.trouble = "away"
        # When two tenants, and one without, submit something of the same name
        handles = [await door.client.submit("add", a=1, tenant=each, dedupe_key="k") for each in ("", *TENANTS)]
        again = await door.client.submit("add", a=2, tenant="acme", dedupe_key="k")
        # Then each has its own, there and once the store is back
        assert [each.duplicate for each in (*handles, again)] == [False, False, False, True]
        door.queue.trouble = "none"
        await door.drained()
        assert (await stores.queue.counts())["new"] == 3
        assert (await door.client.submit("add", a=3, tenant="beta", dedupe_key="k")).duplicate
    finally:
        await door.close()


# Rooms.


@pytest.fixture
async def small_stores(tmp_path: Path) -> AsyncIterator[Any]:
    async with open_stores(tmp_path, max_waiting=400) as found:
        await found.control.register([FunctionSpec("add")])
        yield found


async def test_a_flood_of_one_tenant_leaves_room_in_the_queue(small_stores: Any) -> None:
    gateway = small_stores.gateway()
    await gateway.start()
    try:
        async with AsyncClient(gateway.address, timeout=1) as client:

            async def put(count: int, tenant: str) -> None:
                await client.submit_many([Call("add", a=each, tenant=tenant) for each in range(count)])

            # Given a tenant that submits until it is refused
            await put(250, "acme")
            with pytest.raises(Overloaded, match="try again later"):
                for _ in range(100):
                    await put(2, "acme")
                    await asyncio.sleep(0.05)
            # When another one comes, and one without a tenant, then there is room for them
            await put(20, "beta")
            await put(20, "")
    finally:
        await gateway.stop()


async def test_receivers_of_one_tenant_take_no_place_of_anothers_callbacks(stores: Any) -> None:
    # Given a receiver that answers nobody but at one address
    heard, let_go = asyncio.Event(), asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        await let_go.wait()
        return web.Response()

    async def quick(request: web.Request) -> web.Response:
        heard.set()
        return web.Response()

    application = web.Application()
    application.router.add_post("/silent", silent)
    application.router.add_post("/quick", quick)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    callbacks = {"secrets": ["whsec_" + base64.b64encode(b"k" * 32).decode()], "allow": ["127.0.0.0/8"], "timeout": 60}
    gateway = stores.gateway(callbacks=callbacks)
    await gateway.start()
    try:
        async with AsyncClient(gateway.address) as client:

            async def end(count: int, tenant: str, url: str) -> None:
                calls = [Call("add", a=each, tenant=tenant, on_done=url) for each in range(count)]
                for handle in await client.submit_many(calls):
                    await handle.cancel()

            # When many workloads of one tenant end, and then one of another
            await end(40, "acme", f"{base}/silent")
            await asyncio.sleep(1)  # they take what places they get
            await end(1, "beta", f"{base}/quick")
            # Then that one is told of soon
            async with asyncio.timeout(10):
                await heard.wait()
    finally:
        let_go.set()
        await gateway.stop()
        await runner.cleanup()


async def test_results_of_one_tenant_push_out_none_of_anothers(tmp_path: Path) -> None:
    # Given a platform that keeps 100 kB of results
    (tmp_path / "pages.py").write_text(
        "import tailrace\n\n@tailrace.function(results=True)\n"
        "async def page(size: int) -> str:\n    return 'x' * size\n"
    )
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "stores.yaml").write_text("result_bytes: 100000\n")
    platform = Platform(
        tmp_path / "data", [str(tmp_path / "pages.py")], tmp_path / "configs", heartbeat=0.5, worker={"executors": 1}
    )
    await platform.start()
    try:
        async with AsyncClient(platform.gateway_address) as client:
            # When a tenant has one, and another tenant then has twenty of a fifth of the room each
            mine = await client.submit("page", size=1000, tenant="acme")
            assert await mine.result(timeout=30) == "x" * 1000
            for _ in range(20):
                handle = await client.submit("page", size=20_000, tenant="beta")
                await handle.result(timeout=30)
            # Then the first one's is there still
            assert await mine.result(timeout=5) == "x" * 1000
    finally:
        await platform.stop()
