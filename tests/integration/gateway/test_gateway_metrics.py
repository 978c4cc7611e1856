"""GET /metrics: the overview of the gateway at each scrape, and no numbers while there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tailrace.assembly import parts
from tailrace.foundation.metrics_server import CONTENT_TYPE
from tailrace.gateway.environment import Neighbours
from tailrace.gateway.metrics_server import GatewayMetricsServer
from tailrace.model.errors import ConfigError
from tailrace.model.overview import Overview, TailerOverview


async def scrape(address: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}/metrics") as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


async def test_a_scrape_asks_the_gateway_and_fails_while_that_is_away(stores: Any) -> None:
    tailer = TailerOverview("orders", "log", "running", read=7, unaccounted=3, classes={"succeeded": 4})

    async def parts() -> Overview:
        return Overview(tailers=[tailer])

    gateway = stores.gateway(beside=Neighbours(overview=parts))
    await gateway.start()
    server = GatewayMetricsServer("127.0.0.1:0", gateway.address)
    await server.start()
    try:
        status, kind, text = await scrape(server.address)
        assert (status, kind) == (200, CONTENT_TYPE)
        assert 'tailrace_tailer_unaccounted{tailer="orders",kind="log"} 3' in text.splitlines()
        assert 'tailrace_tailer_positions{tailer="orders",kind="log",class="succeeded"} 4' in text.splitlines()
        tailer.unaccounted = 0
        assert (
            'tailrace_tailer_unaccounted{tailer="orders",kind="log"} 0'
            in (await scrape(server.address))[2].splitlines()
        )
        # When somebody else wants the port, or another host is asked for
        for listen, why in ((server.address, "choose another port"), ("0.0.0.0:0", "loopback"), ("x", "host:port")):
            with pytest.raises(ConfigError, match=why):
                await GatewayMetricsServer(listen, gateway.address).start()
        # When the gateway is gone, then a scrape fails
        await gateway.stop()
        status, _, text = await scrape(server.address)
        assert status == 503
        assert gateway.address in text
    finally:
        await server.stop()
        await server.stop()
        await gateway.stop()


async def test_a_scheduler_answers_with_its_own_numbers_where_its_file_says_so(tmp_path: Path) -> None:
    # Given a scheduler.yaml that says where
    (tmp_path / "scheduler.yaml").write_text("listen: 127.0.0.1:0\nmetrics_listen: 127.0.0.1:0\n")
    scheduler: Any = parts.SchedulerSettings(config=tmp_path).build()
    # When it runs
    await scheduler.start()
    try:
        status, kind, text = await scrape(scheduler.metrics_address)
    finally:
        await scheduler.stop()
    # Then a scrape is answered
    assert (status, kind) == (200, CONTENT_TYPE)
    assert "tailrace_scheduler_ready 1" in text.splitlines()
    assert scheduler.address != scheduler.metrics_address
