"""A gateway with a spool over a queue that fails as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from servers.fickle_queue import FickleQueue

import tailrace
from tailrace.assembly.spool_file import SpoolFile
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.server import GatewayServer
from tailrace.model.demand import Cell, Demand
from tailrace.wire.gateway import GatewayClient

DEMAND = Demand({Cell("add", 2): 1000}, frozenset(), 1000)


class SpoolDoor:
    """A gateway whose `queue` fails as it is told. `run_everything` does the work of workers."""

    def __init__(self, stores: Any, folder: Path, **bounds: object) -> None:
        self.queue = FickleQueue(stores.queue)
        self._stores = stores
        self._folder = folder
        self._config = GatewayConfig.model_validate({"listen": "127.0.0.1:0", "store_patience": 0.2, **bounds})
        self.spool: SpoolFile | None = None
        self._gateway: GatewayServer | None = None
        self.client = tailrace.AsyncClient("127.0.0.1:1")
        self.operator = GatewayClient("127.0.0.1:1")

    async def open(self) -> SpoolDoor:
        self._folder.mkdir(exist_ok=True)
        self.spool = SpoolFile(self._folder, self._config, own=True)
        await self.spool.start()
        stores = replace(self._stores, queue=self.queue, spool=self.spool.spool)
        self._gateway = GatewayServer(self._config, stores)
        await self._gateway.start()
        self.client = tailrace.AsyncClient(self._gateway.address, timeout=5)
        self.operator = GatewayClient(self._gateway.address)
        return self

    async def close(self) -> None:
        await self.client.close()
        await self.operator.close()
        if self._gateway is not None:
            await self._gateway.stop()
        if self.spool is not None:
            await self.spool.stop()

    async def drained(self) -> None:
        async with asyncio.timeout(20):
            while (await self.operator.overview()).spool.items:
                await asyncio.sleep(0.005)

    async def run_everything(self) -> list[bytes]:
        """Claims and settles all items. Returns their payloads in the order in which workers would get them."""
        got: list[bytes] = []
        while leased := await self._stores.queue.lease(DEMAND, 30.0, 0):
            got += leased.payloads
            await self._stores.queue.settle(leased.fence, leased.ids, [])
        return got


#: Opens one, with these settings of the gateway's.
Opened = Callable[..., Awaitable[SpoolDoor]]
