"""Servers of stores come and go: clients are told, find them again, and wait for none that drains."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from scenes.served_stores import serving

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.errors import NotConnected, Unavailable
from tailrace.stores.config import StoresConfig
from tailrace.stores.remote import RemoteLog, RemoteResults
from tailrace.stores.server import StoreServer
from tailrace.wire.channel import dial
from tailrace.wire.stores import LONGEST_WAIT, SERVICE


async def test_a_server_that_is_gone_is_unavailable_and_one_that_comes_back_is_found(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path / "data", StoresConfig(durability="relaxed")) as stores:
        async with serving(stores.engines()) as address:
            results = RemoteResults(address)
            await results.put({"id": b"kept"})

        async with results:
            with pytest.raises(Unavailable, match="does not answer"):
                await results.get("id")
            await results.close()  # the next call dials anew, so that no back-off is waited for

            async with serving(stores.engines(), address):
                assert await results.get("id") == b"kept"


class Held:
    """A Log engine whose `wait` says when it was entered and then waits for ever."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return None  # the protocol's other methods, which nobody calls here

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        self.seconds = timeout
        self.entered.set()
        await asyncio.Event().wait()


async def test_a_drain_ends_the_waits_and_a_wait_has_a_bound() -> None:
    engine = Held()
    server = StoreServer("127.0.0.1:0", {"log": engine})
    await server.start()
    try:
        async with RemoteLog(server.address) as log, dial(server.address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            words = health_pb2.HealthCheckResponse
            for name in ("", SERVICE):
                check = await health.Check(health_pb2.HealthCheckRequest(service=name))
                assert check.status == words.SERVING
            waiting = asyncio.create_task(log.wait("s", {}, 1e6))
            await engine.entered.wait()

            async with asyncio.timeout(LONGEST_WAIT / 2):
                await server.drain(LONGEST_WAIT)

            with pytest.raises(NotConnected, match="stopping"):
                await waiting
            assert engine.seconds == LONGEST_WAIT
    finally:
        await server.stop()
        await server.stop()
