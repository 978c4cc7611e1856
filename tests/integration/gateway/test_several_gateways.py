"""Clients of several gateways over one store: whichever answers, nothing is stored twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from servers.fickle_queue import FickleQueue

import tailrace
from tailrace.bench.faults.proxy import FaultProxy
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.server import GatewayServer


def gateway_over(stores: Any, queue: Any) -> GatewayServer:
    # Clients keep to the wires that are broken.
    config = GatewayConfig.model_validate({"listen": "127.0.0.1:0", "direct": False})
    return GatewayServer(config, replace(stores, queue=queue))


@pytest.fixture
async def two(stores: Any) -> AsyncIterator[tuple[FickleQueue, list[str]]]:
    """Two gateways over one store; the first one's answers can be lost after it stored."""
    queue = FickleQueue(stores.queue)
    gateways = [gateway_over(stores, queue), gateway_over(stores, stores.queue)]
    for each in gateways:
        await each.start()
    yield queue, [each.address for each in gateways]
    for each in gateways:
        await each.stop()


async def test_a_reply_that_is_cut_a_thousand_times_makes_no_duplicate(
    stores: Any, two: tuple[FickleQueue, list[str]]
) -> None:
    # Given a gateway that stores and whose answers are lost, and another over the same store
    queue, addresses = two
    queue.trouble = "cut"
    clients = [tailrace.AsyncClient(addresses, timeout=20) for _ in range(4)]
    for client in clients:
        client._talk._place = 0
    ids: list[str] = []

    async def submit(client: tailrace.AsyncClient) -> None:
        while queue.asked < 1000:
            client._talk._place = 0  # it begins with the one that cuts
            ids.append((await client.submit("add", a=len(ids))).id)

    # When everything that is submitted is heard by both
    await asyncio.gather(*(submit(client) for client in clients for _ in range(16)))
    # Then all was answered by the other one, and is there once
    assert queue.asked >= 1000
    assert len(ids) == len(set(ids)) == sum((await stores.queue.counts()).values())
    for client in clients:
        await client.close()


@pytest.mark.long(minutes=0.5)
async def test_nor_does_a_wire_that_loses_replies(stores: Any, two: tuple[FickleQueue, list[str]]) -> None:
    # Given a wire to the first gateway that drops each reply once the request went through
    _, (first, second) = two
    proxy = FaultProxy(first)
    await proxy.start()
    async with tailrace.AsyncClient([proxy.address, second], timeout=10) as client:
        ids: list[str] = []
        for number in range(20):
            client._talk._place = 0
            proxy.drop()
            submitting = asyncio.create_task(client.submit("add", a=number))
            await proxy.swallowed.wait()
            proxy.heal()
            ids.append((await submitting).id)
        assert len(ids) == len(set(ids)) == sum((await stores.queue.counts()).values())
    await proxy.stop()
