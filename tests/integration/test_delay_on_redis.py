"""The delay service with its streams on a real Redis: park → due, though the server is killed; the whole platform."""

from __future__ import annotations

import asyncio
import time
import uuid
from pathlib import Path

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.platform import Platform
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.delay_service.service import DelayService
from tailrace.model.errors import NotConnected
from tailrace.model.parked import Parked, parked_from
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.log.log import Record
from tailrace.stores.log.redis import RedisLog, RedisLogOptions
from tailrace.stores.remote import RemoteLog
from tailrace.wire.gateway import GatewayClient

CONFIG = DelayConfig(rungs=(0.1, 0.5), max_delay=60)
FUNCTIONS = str(Path(__file__).parents[1] / "e2e" / "journaled_functions.py")


async def arrived(log, wanted: set[str]) -> dict[str, list[tuple[Parked, float]]]:
    """Reads the due stream until all of these items came. Returns each item's copies with the time of its arrival."""
    found: dict[str, list[tuple[Parked, float]]] = {}
    position = 0
    async with asyncio.timeout(60):
        while wanted - set(found):
            try:
                await log.wait("due.f", {0: position}, 1.0)
                records = await log.read("due.f", 0, position, 1000, 1 << 24)
            except NotConnected:
                await asyncio.sleep(0.05)
                continue
            for headers, payload, at in zip(records.headers, records.payloads, records.times, strict=True):
                item = parked_from(headers, payload)
                found.setdefault(item.id, []).append((item, at))
            position = records.positions[-1] + 1 if records.positions else position
    return found


async def parked(service: DelayService, items: list[Parked]) -> int:
    """Parks as a tailer does: a park that was not answered is made again. Returns how often that was so."""
    again = 0
    while True:
        try:
            await service.park(items)
            return again
        except NotConnected:
            again += 1
            await asyncio.sleep(0.05)


async def test_what_was_parked_comes_due_though_the_server_is_killed(own_redis, tmp_path: Path) -> None:
    # Given a delay service on a server that keeps what it answered
    server = own_redis()
    config = StoresConfig(delay_log={"engine": "redis", "url": server.address})
    async with EmbeddedStores(tmp_path, config) as stores:
        service = DelayService(stores.delay_log, CONFIG)
        mover = Mover(stores.delay_log, stores.checkpoints, stores.ownership, CONFIG)
        await mover.start()
        now = time.time()
        delays = {f"{n}": 0.05 + n % 30 / 10 for n in range(300)}
        items = [
            Parked("orders", id, Kind("f"), id.encode(), now + delay, now - 1, n=1) for id, delay in delays.items()
        ]
        # When the server is killed and comes back while items are parked and moved
        parking = [asyncio.create_task(parked(service, items[first : first + 10])) for first in range(0, 150, 10)]
        await asyncio.sleep(0.2)
        server.program.kill()
        parking += [asyncio.create_task(parked(service, items[first : first + 10])) for first in range(150, 300, 10)]
        await asyncio.sleep(0.2)
        server.program.start()
        again = sum(await asyncio.gather(*parking))
        # Then every one is due, not early, as it was parked; copies bear the number of the same park
        found = await arrived(stores.delay_log, set(delays))
        await mover.drain(5)
    assert again > 0
    for item in items:
        for copy, at in found[item.id]:
            assert at >= item.due and copy.payload == item.payload and (copy.due, copy.n) == (item.due, 1)


async def test_two_parks_of_one_item_are_two_equal_copies(redis_server: str) -> None:
    """A tailer that repeats a park after a time-out leaves two copies of one id and number: the ledger starts one of
    them."""
    log = RedisLog(RedisLogOptions(url=redis_server, prefix=f"t-{uuid.uuid4()}"))
    now = time.time()
    item = Parked("orders", "orders/0/7", Kind("f"), b"x", now - 1, now - 9, partition="0", position=7, n=2, fence=5)
    service = DelayService(log, CONFIG)
    for _ in range(2):
        await service.park([item])
    copies = (await arrived(log, {item.id}))[item.id]
    await log.close()
    assert {(copy.id, copy.partition, copy.position, copy.n, copy.fence) for copy, _ in copies} == {
        ("orders/0/7", "0", 7, 2, 5)
    }


async def test_a_failed_item_of_a_running_platform_waits_in_redis_and_comes_back(
    redis_server: str, tmp_path: Path
) -> None:
    # Given a platform whose delay service rests in Redis
    prefix = f"t-{uuid.uuid4()}"
    (tmp_path / "config" / "tailers").mkdir(parents=True)
    (tmp_path / "config" / "stores.yaml").write_text(
        f"delay_log: {{engine: redis, url: '{redis_server}', prefix: {prefix}}}\n"
    )
    (tmp_path / "config" / "delay.yaml").write_text("rungs: [100ms, 1s]\nmax_delay: 60s\n")
    (tmp_path / "config" / "tailers" / "orders.yaml").write_text(
        "name: orders\nsource: {kind: log, stream: orders}\nfunction: work\nresults: true\n"
    )
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        config=tmp_path / "config",
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")},
    )
    try:
        await platform.start()
        # When an item fails its first attempt
        async with RemoteLog(platform.store_address) as log:
            await log.append("orders", 0, [Record(b'{"fail_first": 1}')])
        # Then it comes back by way of Redis, and ends well
        async with GatewayClient(platform.gateway_address) as gateway, asyncio.timeout(60):
            while not [t for t in (await gateway.overview()).tailers if t.name == "due" and t.settled == 1]:
                await asyncio.sleep(0.05)
    finally:
        await platform.stop()
    apart = RedisLog(RedisLogOptions(url=redis_server, prefix=prefix))
    assert (await apart.bounds("due.work"))[0].end == 1
    assert not (tmp_path / "data" / "delay.db").exists()
    await apart.close()
