"""Several copies of the delay service over the same stores: all take parks, due items move once, and when one dies the
others go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.delay_service import leadership
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.delay_service.queue_mover import QueueMover
from tailrace.delay_service.records import rung_wait
from tailrace.delay_service.service import DelayService
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.parked import Parked, parked_from
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig

CONFIG = DelayConfig(rungs=(0.05, 0.2), max_delay=60.0)


@pytest.fixture
async def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedStores]:
    monkeypatch.setattr(leadership, "LEASE", 0.5)
    monkeypatch.setattr(leadership, "RENEW_EVERY", 0.1)
    monkeypatch.setattr(leadership, "LOOK_EVERY", 0.05)
    async with EmbeddedStores(tmp_path, StoresConfig(durability="relaxed", delay_queue="sqlite")) as stores:
        yield stores


def mover(stores: EmbeddedStores) -> Mover:
    return Mover(stores.delay_log, stores.checkpoints, stores.ownership, CONFIG)


async def park(service: DelayService, first: int, count: int) -> None:
    now = SYSTEM_CLOCK.wall()
    await service.park([Parked("t", str(n), Kind("f"), b"", now + 0.15, now) for n in range(first, first + count)])


async def due(stores: EmbeddedStores, count: int) -> list[str]:
    """Waits until so many items are due. Returns all that are."""
    async with asyncio.timeout(60):
        await stores.delay_log.wait("due.f", {0: count - 1}, 60.0)
    found = await stores.delay_log.read("due.f", 0, 0, 10_000, 1 << 24)
    return [parked_from(headers, b"").id for headers in found.headers]


async def rested(stores: EmbeddedStores) -> None:
    """Waits until every move is committed and trimmed: a move that is cut off may be repeated."""
    streams = [stream for stream in await stores.delay_log.streams() if rung_wait(stream)]
    async with asyncio.timeout(20):
        for stream in streams:
            while (bounds := (await stores.delay_log.bounds(stream))[0]).start < bounds.end:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("dies", [True, False], ids=["dies", "ends"])
async def test_whoever_was_deposed_takes_over_again(stores: EmbeddedStores, dies: bool) -> None:
    # Given two copies, of which the later one moves
    services = [DelayService(stores.delay_log, CONFIG) for _ in range(2)]
    one, two = mover(stores), mover(stores)
    await one.start()
    await two.start()
    async with asyncio.timeout(20):
        while not one.stands_by:
            await asyncio.sleep(0.01)
    await asyncio.gather(*(park(service, n * 10, 10) for n, service in enumerate(services)))
    assert sorted(map(int, await due(stores, 20))) == list(range(20))
    await rested(stores)
    # When it dies without a word, or ends
    await (two.stop() if dies else two.drain(5.0))
    await park(services[0], 20, 10)
    # Then the other one moves what was parked, and nothing twice
    assert sorted(map(int, await due(stores, 30))) == list(range(30))
    assert one.why == ""
    await one.drain(5.0)
    row = await stores.ownership.read(leadership.SOURCE, "")
    assert row is not None and row.holder == ""


async def test_movers_share_a_queue_by_its_leases(stores: EmbeddedStores) -> None:
    # Given three copies that wait in one queue
    queue = stores.delay_queue
    assert queue is not None
    services = [DelayService(stores.delay_log, CONFIG, queue=queue) for _ in range(3)]
    small = CONFIG.model_copy(update={"batch_items": 16})
    movers = [QueueMover(queue, stores.delay_log, small) for _ in range(3)]
    for each in movers:
        await each.start()
    # When all of them take parks
    await asyncio.gather(*(park(service, n * 100, 100) for n, service in enumerate(services)))
    # Then each item is due once
    assert sorted(map(int, await due(stores, 300))) == list(range(300))
    for each in movers:
        await each.drain(5.0)
