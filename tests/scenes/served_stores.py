"""Stores behind a server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tailrace.model.demand import Cell, Closed, Demand
from tailrace.model.priority import Priority
from tailrace.model.workload import Kind
from tailrace.stores.server import StoreServer

KIND = Kind("charge", int(Priority.INTERACTIVE), "invoices", "acme")
DEMAND = Demand({Cell("charge", 0): 10}, frozenset({Closed("other", reason="paused")}), 10)
NOT_UTF8 = b"\x00\xff\xfe"


@asynccontextmanager
async def serving(engines: Mapping[str, object], listen: str = "127.0.0.1:0") -> AsyncIterator[str]:
    server = StoreServer(listen, engines)
    await server.start()
    try:
        yield server.address
    finally:
        await server.stop()
