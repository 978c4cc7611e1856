"""Law 9, measured: a healthy stream leaves no payload byte in the platform's files; an item that fails rests there
whole."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tailrace.assembly.platform import Platform
from tailrace.wire.gateway import GatewayClient

FILES = 100
HEALTHY = b"a healthy payload that nobody copies"
FAILING = b"a failing payload that waits in the delay service"

FUNCTIONS = """
import tailrace

@tailrace.function
async def take(content: bytes) -> None:
    if content.startswith(b"a failing"):
        raise tailrace.RetryLater("not today", after="1h")
"""
TAILER = "name: texts\nsource: {{kind: directory, path: '{folder}', payload: content, once: true}}\nfunction: take\n"


async def test_a_healthy_stream_writes_no_payload_byte(tmp_path: Path) -> None:
    # Given a folder of files, one of which will fail
    folder, data = tmp_path / "texts", tmp_path / "data"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_bytes(HEALTHY + b" %d" % number)
    (folder / "failing.txt").write_bytes(FAILING)
    (tmp_path / "taking.py").write_text(FUNCTIONS)
    tailer = tmp_path / "texts.yaml"
    tailer.write_text(TAILER.format(folder=folder))
    platform = Platform(data, [str(tmp_path / "taking.py")], tailers=[tailer], heartbeat=0.5, worker={"executors": 1})
    # When all of it has been settled
    await platform.start()
    try:
        async with GatewayClient(platform.gateway_address) as gateway, asyncio.timeout(60):
            while await settled(gateway) <= FILES:
                print(await gateway.overview())
                await asyncio.sleep(1)
        written = b"".join(path.read_bytes() for path in data.iterdir())
        await platform.drain(10)
    finally:
        await platform.stop()
    # Then only the one that failed is in the platform's files, before and after they are closed
    rested = b"".join(path.read_bytes() for path in data.iterdir())
    assert (HEALTHY in written, HEALTHY in rested) == (False, False)
    assert FAILING in written
    assert FAILING in rested


async def settled(gateway: GatewayClient) -> int:
    """Number of files that are done, or rest in the delay service."""
    return sum(each.settled + each.parked for each in (await gateway.overview()).tailers if each.name == "texts")
