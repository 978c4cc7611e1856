"""Messages that strangers begin and never end take no room: nothing of a call is kept before its caller is known."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.free_port import free_port
from tailrace.assembly.platform import Platform
from tailrace.bench.faults.strangers import HalfMessages

pytestmark = pytest.mark.trust(point=11)
FUNCTIONS = """
import tailrace

@tailrace.function
async def add(a: int, b: int) -> int:
    return a + b
"""
MIB = 1 << 20
SUBMIT = "/tailrace.v1.Gateway/Submit"
HEALTH = "/grpc.health.v1.Health/Check"


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "sums.py").write_text(FUNCTIONS)
    platform = Platform(tmp_path / "data", [str(tmp_path / "sums.py")], worker={"executors": 1})
    await platform.start()
    try:
        yield platform
    finally:
        await platform.stop()


def resident(pid: int) -> int:
    """Bytes of memory of a process."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("part", "path"),
    [("node", SUBMIT), ("node", HEALTH), ("scheduler", "/tailrace.v1.Scheduler/Execute"), ("scheduler", HEALTH)],
)
async def test_messages_that_strangers_begin_and_never_end_are_not_kept(
    platform: Platform, part: str, path: str
) -> None:
    # Given a platform of this machine, and peers that do not know its secret
    address = platform.gateway_address if part == "node" else platform.scheduler_address
    before = resident(platform.pids()[part])
    peers = [await HalfMessages.connect(address) for _ in range(50)]
    try:
        # When they begin hundreds of messages of 15 MiB, and end none
        async with asyncio.timeout(60):
            await asyncio.gather(*(peer.begin(path, [*range(10)], size=4 * MIB) for peer in peers))
        # Then the part has kept next to nothing of them
        assert resident(platform.pids()[part]) - before <= 32 * MIB
        # And everybody else is served
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            assert await (await client.submit("add", a=1, b=2)).result(timeout=20) == 3
    finally:
        for peer in peers:
            await peer.close()


async def test_messages_over_tls_without_a_token_are_not_kept(tmp_path: Path) -> None:
    # Given a node for other hosts that takes tokens, and peers without one
    (tmp_path / "configs").mkdir()
    gateway, tokens = free_port(), free_port()
    (tmp_path / "configs" / "access.yaml").write_text(f"tls: {tmp_path}/fleet/node\n")
    (tmp_path / "configs" / "gateway.yaml").write_text(
        f"listen: tls:127.0.0.1:{gateway}\ntoken_listen: tls:127.0.0.1:{tokens}\n"
    )
    for part in ("scheduler", "delay"):
        (tmp_path / "configs" / f"{part}.yaml").write_text(f"listen: 127.0.0.1:{free_port()}\n")
    environment = {**os.environ, "TAILRACE_RUN_DIR": str(tmp_path / "run")}
    words = [sys.executable, "-m", "tailrace.cli"]
    made = await asyncio.create_subprocess_exec(
        *words, "auth", "init", str(tmp_path / "fleet"), "--host", "127.0.0.1", stdout=DEVNULL, env=environment
    )
    assert await made.wait() == 0
    configured = "--config", str(tmp_path / "configs"), "--data", str(tmp_path / "data")
    node = await asyncio.create_subprocess_exec(*words, "node", *configured, stderr=DEVNULL, env=environment)
    peers: list[HalfMessages] = []
    try:
        secured = ssl.create_default_context(cafile=str(tmp_path / "fleet" / "ca.crt"))
        secured.check_hostname = False
        secured.set_alpn_protocols(["h2"])
        async with asyncio.timeout(60):
            while len(peers) < 10:
                try:
                    peers.append(await HalfMessages.connect(f"127.0.0.1:{tokens}", secured))
                except OSError:
                    await asyncio.sleep(0.05)  # it has not begun to listen
        before = resident(node.pid)
        # When they begin two hundred messages of 15 MiB, and end none
        async with asyncio.timeout(60):
            await asyncio.gather(*(peer.begin(SUBMIT, [*range(20)], size=4 * MIB) for peer in peers))
        # Then the node has kept next to nothing of them
        assert resident(node.pid) - before <= 32 * MIB
    finally:
        for peer in peers:
            await peer.close()
        node.terminate()
        await node.wait()
