"""Drops, positions that were passed without being run, over the gateway."""

from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import gateway_stores
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.server import GatewayServer
from tailrace.model.drop import Cause, Drop, DropRow
from tailrace.model.errors import InvalidRequest
from tailrace.wire.gateway import GatewayClient

CONFIG = GatewayConfig.model_validate({"listen": "127.0.0.1:0"})


async def test_dropped_ranges_come_back_whole_and_page_by_page(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        running = GatewayServer(CONFIG, gateway_stores(stores))
        await running.start()
        by_gate = Drop(3, 6, 4, Cause.GATE, 7, "ann", "flood: è", 12.5)
        lost = Drop(1 << 40, (1 << 40) + 1, 2, Cause.RETENTION, 0, "allow_loss", "gone", 13.5)
        await stores.drops.add("orders", "0", [by_gate, lost], 0)
        await stores.drops.add("other", "1", [Drop(0, 0, 1, Cause.ABSENT)], 0)
        async with GatewayClient(running.address) as client:
            assert await client.drops("orders") == [DropRow("orders", "0", by_gate), DropRow("orders", "0", lost)]
            assert [row.source for row in await client.drops(limit=2, skip=1)] == ["orders", "other"]
            assert await client.drops("unknown") == []
        await running.stop()


async def test_a_gateway_without_a_store_of_drops_says_so(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        running = GatewayServer(CONFIG, replace(gateway_stores(stores), drops=None))
        await running.start()
        async with GatewayClient(running.address) as client:
            with pytest.raises(InvalidRequest, match="no store of drops"):
                await client.drops()
        await running.stop()
