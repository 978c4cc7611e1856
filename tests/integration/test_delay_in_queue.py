"""`tailrace delay` apart, its items waiting in the queue that the store serves."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tailrace.assembly.separate import SeparateDelay, SeparateStore
from tailrace.assembly.settings import ConfigDirectory
from tailrace.model.parked import Parked, parked_from
from tailrace.model.workload import Kind
from tailrace.stores.remote import RemoteLog
from tailrace.wire.delay import DelayClient


async def test_two_copies_apart_share_the_queue_that_the_store_serves(tmp_path: Path) -> None:
    # Given a store that serves the queue, and two copies of the delay service over it
    config = tmp_path / "config"
    config.mkdir()
    (config / "stores.yaml").write_text("delay_queue: sqlite\n")
    directory = ConfigDirectory(config)
    store = SeparateStore(tmp_path / "data", directory, "127.0.0.1:0")
    await store.start()
    copies = [SeparateDelay(store.address, directory, "127.0.0.1:0") for _ in range(2)]
    try:
        for copy in copies:
            await copy.start()
        # When both are given items
        now = time.time()
        for number, copy in enumerate(copies):
            async with DelayClient(copy.address) as client:
                kind, due = Kind("f"), now + 0.3
                await client.park([Parked("t", f"{number}-{n}", kind, b"x", due, now, n=1) for n in range(20)])
                assert {depth.stream for depth in await client.depth() if depth.items} <= {"delay.queue", "due.f"}
        # Then each is due once, and not early
        async with RemoteLog(store.address, "delay_log") as log, asyncio.timeout(60):
            await log.wait("due.f", {0: 39}, 60.0)
            found = await log.read("due.f", 0, 0, 100, 1 << 20)
        items = [parked_from(*each) for each in zip(found.headers, found.payloads, strict=True)]
        assert sorted(item.id for item in items) == sorted(f"{copy}-{n}" for copy in range(2) for n in range(20))
        assert all(at >= item.due for item, at in zip(items, found.times, strict=True))
        assert (tmp_path / "data" / "waiting.db").exists()
    finally:
        for copy in copies:
            await copy.drain(5.0)
            await copy.stop()
        await store.stop()
