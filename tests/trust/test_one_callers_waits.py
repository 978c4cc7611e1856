"""Waits of one caller, and for one receiver, take no more than their part."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

pytestmark = pytest.mark.trust(point=14)


async def test_a_collector_that_hangs_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    # Given a collector that takes what is sent and answers nobody
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readline()).startswith(b"POST /v1/metrics"):
            asked.set()
        await reader.read()
        writer.close()

    collector = await asyncio.start_server(silent, "127.0.0.1", 0)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "gateway.yaml").write_text("listen: 127.0.0.1:0\n")
    environment = {
        **os.environ,
        "TAILRACE_RUN_DIR": str(tmp_path / "run"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.sockets[0].getsockname()[1]}",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
    }
    configured = "--config", str(tmp_path / "configs"), "--data", str(tmp_path / "data")
    node = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tailrace.cli", "node", *configured), stderr=DEVNULL, env=environment
    )
    try:
        # When a node is told to end while it sends its metrics
        async with asyncio.timeout(30):
            await asked.wait()
        told = time.monotonic()
        node.terminate()
        # Then it has ended soon
        async with asyncio.timeout(30):
            await node.wait()
        assert time.monotonic() - told < 6
    finally:
        if node.returncode is None:
            node.kill()
        await node.wait()
        collector.close()
