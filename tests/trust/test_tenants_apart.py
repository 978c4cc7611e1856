"""Tenants do not meet: the same name of two of them is two names, and each room leaves the others theirs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scenes.fleet import Fleet
from scenes.token_door import Door

from tailrace.model.errors import Conflict
from tailrace.model.function_spec import FunctionSpec
from tailrace.sdk.async_client import AsyncClient
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.v1 import gateway_pb2 as pb

GATEWAY = Path(__file__).parents[1] / "integration" / "gateway" / "gateway_process.py"
TENANTS = ("acme", "beta")
pytestmark = pytest.mark.trust(point=12)


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Any]:
    spec = importlib.util.spec_from_file_location("gateway_process", GATEWAY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gateway_process"] = module
    spec.loader.exec_module(module)
    async with module.open_stores(tmp_path) as opened:
        await opened.control.register([FunctionSpec("add")])
        yield opened


@pytest.fixture
async def door(stores: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    fleet = Fleet(tmp_path / "fleet", monkeypatch)
    with fleet.as_(fleet.issue("gateway")):
        server = stores.gateway(listen="tls:127.0.0.1:0", token_listen="127.0.0.1:0")
        await server.start()
    yield Door(fleet=fleet, server=server, stores=stores)
    await server.stop()


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
