"""Tenants do not meet: the same name of two of them is two names, and each room leaves the others theirs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from scenes.gateway_process import open_stores
from scenes.spool_door import SpoolDoor
from scenes.token_door import Door

from tailrace import Call
from tailrace.assembly.platform import Platform
from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import Conflict, Overloaded
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.priority import Priority
from tailrace.sdk.async_client import AsyncClient
from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.rules import refusals
from tailrace.stores.jobs.sqlite.jobs import SqliteJobs
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
            # When another one comes, and one without a tenant, then there is room for them, also in a call with its
            await put(20, "beta")
            await put(20, "")
            tries = [client.submit("add", a=1, tenant=each) for each in ("acme", "acme", *TENANTS)]
            tried = await asyncio.gather(*tries, return_exceptions=True)
            assert [isinstance(each, Overloaded) for each in tried] == [True, True, True, False]
            # And once some of its own are over, there is room for more
            demand = Demand({Cell("add", int(Priority.EVENTUAL)): 200}, frozenset(), 200)
            for _ in range(3):
                leased = await small_stores.queue.lease(demand, 30.0, 0)
                await small_stores.queue.settle(leased.fence, leased.ids, [])
            async with asyncio.timeout(10):
                while True:
                    with contextlib.suppress(Overloaded):
                        await put(2, "acme")
                        break
                    await asyncio.sleep(0.05)  # as a gateway looks about once a second
    finally:
        await gateway.stop()


async def test_a_flood_of_one_tenant_leaves_room_in_the_spool(stores: Any, tmp_path: Path) -> None:
    # Given a gateway whose store is away, and which spools 40 workloads of 4000 bytes
    door = await SpoolDoor(stores, tmp_path / "spool", spool_items=40, spool_bytes=4000).open()
    try:
        door.queue.trouble = "away"

        async def put(tenant: str, **given: Any) -> None:
            await door.client.submit("add", tenant=tenant, **given)

        # When a tenant submits until it is refused, small ones and large ones
        with pytest.raises(Overloaded, match=r"tenant 'acme' has about 20 of the 40 workloads .*`spool_items`.*others"):
            for each in range(40):
                await put("acme", a=each)
        with pytest.raises(Overloaded, match=r"tenant 'large' has about \d+ of the 4000 bytes .*`spool_bytes`.*others"):
            for each in range(40):
                await put("large", a=each, text="x" * 500)
        # Then another one, and one without a tenant, find room, also in a call that another's share: its refusal is its
        held = await door.client.submit_many([Call("add", a=each, tenant="beta") for each in range(3)])
        assert all(each.id for each in held)
        tries = await asyncio.gather(put("beta", a=9), put("acme", a=9), put("", a=9), return_exceptions=True)
        assert [type(each) for each in tries] == [type(None), Overloaded, type(None)]
        # And a batch of several is refused whole, at once, for the one that has none, and taken without it
        async with asyncio.timeout(2):
            with pytest.raises(Overloaded, match="'acme'"):
                await door.client.submit_many([Call("add", a=1, tenant=each) for each in TENANTS])
        await door.client.submit_many([Call("add", a=1, tenant="beta")])
        # And once the store has them, there is room for the first one at once
        door.queue.trouble = "none"
        await door.drained()
        door.queue.trouble = "away"
        for each in range(20):
            await put("acme", a=each)
    finally:
        await door.close()


async def test_who_uses_no_tenants_has_the_whole_spool(stores: Any, tmp_path: Path) -> None:
    # Given a gateway whose store is away, and nobody with a tenant
    door = await SpoolDoor(stores, tmp_path / "spool", spool_items=40).open()
    try:
        door.queue.trouble = "away"
        await door.client.submit_many([Call("add", a=each) for each in range(40)])
        with pytest.raises(Overloaded, match="has spooled 40 workloads"):
            await door.client.submit("add", a=1)
    finally:
        await door.close()


async def test_jobs_of_one_tenant_leave_others_theirs(stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MOST_OPEN", 20)
    gateway = stores.gateway()
    await gateway.start()
    try:
        async with AsyncClient(gateway.address, timeout=1) as client:

            async def open_one(tenant: str, key: str) -> None:
                await client.job("sums", "add", tenant=tenant, key=key).add(a=1)

            # Given a tenant that makes jobs until it is refused
            with pytest.raises(Overloaded, match=r"the tenant 'acme' has about \d+ of the 20 jobs .*others"):
                for each in range(20):
                    await open_one("acme", f"{each}")
                    await asyncio.sleep(0.15)  # as a gateway sees that room is scarce within about a second
            # Then another one makes some, and one without a tenant
            await open_one("beta", "1")
            await open_one("", "1")
    finally:
        await gateway.stop()


async def test_what_jobs_of_one_tenant_keep_leaves_others_theirs(tmp_path: Path) -> None:
    # Given jobs of a tenant that keep more than half of what may be kept
    async with open_stores(tmp_path, job_bytes=10_000) as stores:
        await stores.control.register([FunctionSpec("add")])
        stores = replace(stores, jobs=SqliteJobs(stores.queue, StoresConfig(job_bytes=10_000)))
        gateway = stores.gateway()
        await gateway.start()
        try:
            async with AsyncClient(gateway.address, timeout=1) as client:
                jobs = {each: client.job("pages", "add", tenant=each) for each in TENANTS}
                for each in range(6):
                    await jobs["acme"].add(a=each)
                await jobs["beta"].add(a=1)
                demand = Demand({Cell("add", int(Priority.EVENTUAL)): 100}, frozenset(), 100)
                leased = await stores.queue.lease(demand, 30.0, 0)
                mine = [(id, kind) for id, kind in zip(leased.ids, leased.kinds, strict=True) if kind.tenant == "acme"]
                ends = [Settle(id, leased.fence, State.SUCCESS, result=b"x" * 1000) for id, _ in mine]
                assert await stores.queue.settle(leased.fence, [], ends) == []
                # When it adds more, then it is refused once that is seen
                with pytest.raises(Overloaded, match=r"'acme' has about 6000 of the 10000 bytes .*job_bytes.*delete"):
                    for each in range(100):
                        await jobs["acme"].add(a=each)
                        await asyncio.sleep(0.1)
                # And another one is not
                await jobs["beta"].add(a=2)
        finally:
            await gateway.stop()


async def test_who_waits_for_busy_workers_keeps_nobody_from_idle_ones(tmp_path: Path) -> None:
    # Given a tenant with more for one pool of workers than a scheduler takes, all of which lasts
    (tmp_path / "mills.py").write_text(
        "import asyncio\n\nimport tailrace\n\n"
        + "".join(
            f'@tailrace.function(pool="slow")\nasync def slow_{each}() -> None:\n    await asyncio.sleep(600)\n\n'
            for each in range(4)
        )
        + "@tailrace.function(results=True)\nasync def quick() -> int:\n    return 1\n"
    )
    (tmp_path / "configs").mkdir()
    platform = Platform(
        tmp_path / "data", [str(tmp_path / "mills.py")], tmp_path / "configs", heartbeat=0.5, worker={"executors": 1}
    )
    await platform.start()
    try:
        async with AsyncClient(platform.gateway_address) as client:
            await client.submit_many([Call(f"slow_{each % 4}", tenant="acme") for each in range(4000)])
            async with asyncio.timeout(60), GatewayClient(platform.gateway_address) as operator:
                before, there = -1, 0
                while there != before or not there:  # until as much is out as there will be
                    await asyncio.sleep(1)
                    before, there = there, sum(each.in_flight for each in (await operator.overview()).tailers)
            # When another one submits to another pool, then that runs
            handle = await client.submit("quick", tenant="beta")
            assert await handle.result(timeout=20) == 1
    finally:
        await platform.stop()


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
