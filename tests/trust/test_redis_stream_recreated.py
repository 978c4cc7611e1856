"""A stream of Redis that is deleted and made again is another stream: none of its entries is passed over as known."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import redis

from tailrace.assembly.platform import Platform
from tailrace.wire.gateway import GatewayClient

pytestmark = pytest.mark.trust(point=2)

FUNCTIONS = """
import os

import tailrace

@tailrace.function
async def work(number: int) -> None:
    descriptor = os.open(os.environ["TAILRACE_TEST_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, b"%d\\n" % number)
    os.close(descriptor)
"""
TAILER = """\
name: orders
source: {kind: redis_stream, url: "%s", streams: [orders], payload: {field: body}%s}
function: work
"""


class Scene:
    """A platform whose tailer reads one stream, and the stream."""

    def __init__(self, server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.journal = folder / "journal"
        (folder / "functions.py").write_text(FUNCTIONS)
        self.platform: Platform | None = None

    def put(self, first: int, count: int) -> None:
        """Adds entries with ids of the application's own, from 1 on."""
        with redis.Redis(port=self.server.port) as client:
            for number in range(count):
                client.xadd("orders", {"body": b'{"number": %d}' % (first + number)}, id=f"{number + 1}-0")

    def delete(self) -> None:
        with redis.Redis(port=self.server.port) as client:
            client.delete("orders")

    def ran(self) -> list[int]:
        return sorted(int(line) for line in self.journal.read_text().split()) if self.journal.exists() else []

    async def start(self, more: str = "") -> None:
        (self.folder / "orders.yaml").write_text(TAILER % (self.server.address, more))
        self.platform = Platform(
            self.folder / "data",
            [str(self.folder / "functions.py")],
            tailers=[self.folder / "orders.yaml"],
            heartbeat=0.3,
            environment={"TAILRACE_TEST_JOURNAL": str(self.journal)},
        )
        await self.platform.start()

    async def have_run(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.ran()) < count or not await self.settled():
                await asyncio.sleep(0.05)

    async def settled(self) -> bool:
        assert self.platform is not None
        async with GatewayClient(self.platform.gateway_address) as gateway:
            return all(audit.good and audit.end for audit in await gateway.audit("orders"))

    async def detail(self) -> str:
        """The words of the tailer once it has failed."""
        assert self.platform is not None
        async with GatewayClient(self.platform.gateway_address) as gateway, asyncio.timeout(30):
            while True:
                tailers = {each.name: each for each in (await gateway.overview()).tailers}
                if "orders" in tailers and tailers["orders"].state == "failed":
                    return tailers["orders"].detail
                assert len(self.ran()) <= 20, "entries of another stream were taken for new ones of the former"
                await asyncio.sleep(0.05)

    async def stop(self) -> None:
        platform, self.platform = self.platform, None
        if platform is not None:
            await platform.stop()


@pytest.fixture
async def scene(own_redis, tmp_path: Path):
    scene = Scene(own_redis(), tmp_path)
    yield scene
    await scene.stop()


async def test_a_stream_made_again_while_the_tailer_is_stopped_is_read_whole_when_asked_for(scene: Scene) -> None:
    # Given a tailer that has read a stream, and is stopped
    scene.put(0, 20)
    await scene.start()
    await scene.have_run(20)
    await scene.stop()
    # When the stream is deleted and made again, with more entries than before and the same ids
    scene.delete()
    scene.put(100, 30)
    await scene.start()
    # Then the tailer runs none of them, and says why
    assert "on_recreated" in await scene.detail()
    assert scene.ran() == list(range(20))
    await scene.stop()
    # And all of them, once it is told to begin anew
    await scene.start(", on_recreated: from_start")
    await scene.have_run(50)
    assert scene.ran() == [*range(20), *range(100, 130)]
