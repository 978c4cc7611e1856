"""The scenario `delay`: the items a second that the delay service parks, durably, and those that it makes due.

Parks come over gRPC, from this process, in batches as a tailer's. Then the node is ended until all its items are due;
the other figure is the rate at which it carries them to the due stream from its next start on, first to last item.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from ..assembly.platform import Platform
from ..model.errors import InvalidRequest
from ..model.parked import Parked
from ..model.workload import Kind
from ..wire.delay import DelayClient
from .figures import Figures, Progress
from .kafka_server import kafka_broker
from .redis_server import redis_server
from .workload import PAYLOAD

#: Items of one call, and calls at once: a tailer's batches, from several tailers.
BATCH = 256
AT_ONCE = 8
#: Seconds that the items wait, on one rung.
WAIT = 15
ENGINES = ("sqlite", "queue", "redis", "kafka")


@contextlib.contextmanager
def _stores(engine: str, folder: Path, client: str) -> Iterator[str]:
    """The text of stores.yaml for an engine, while its server runs."""
    if engine == "sqlite":
        yield "delay_log: {engine: sqlite}\n"
    elif engine == "queue":
        yield "delay_queue: sqlite\n"
    elif engine == "redis":
        with redis_server(folder / "redis") as url:
            yield f'delay_log: {{engine: redis, url: "{url}", prefix: bench-{uuid.uuid4()}}}\n'
    elif engine == "kafka":
        with kafka_broker(folder / "kafka") as broker:
            yield (
                f'delay_log: {{engine: kafka, client: {client}, bootstrap_servers: ["{broker}"], '
                f"prefix: bench-{uuid.uuid4()}}}\n"
            )
    else:
        raise InvalidRequest(f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}")


async def delay(folder: Path, count: int, engine: str, progress: Progress, client: str = "kafka-python") -> Figures:
    """Measures with `count` items of about 200 bytes on one rung, of one function that nobody runs. `client`:
    Kafka's."""
    config = folder / "config"
    config.mkdir()
    with _stores(engine, folder, client) as stores:
        (config / "stores.yaml").write_text(stores)
        (config / "delay.yaml").write_text(
            f"rungs: [{WAIT}s]\nmax_delay: {100 * WAIT}s\nmax_items: {2 * count}\nmax_bytes: 8GiB\n"
        )
        platform = Platform(folder / "data", config=config)
        await platform.start()
        try:
            began = time.perf_counter()
            due = time.time() + WAIT
            await _park(platform.delay_address, count, due, lambda done: progress("parking", done / count))
            parks = time.perf_counter() - began
        finally:
            await platform.stop()
        while time.time() < due + WAIT + 1:
            progress("waiting until all items are due", 1.0)
            await asyncio.sleep(0.2)
        started = time.perf_counter()
        await platform.start()
        try:
            address = platform.delay_address
            seconds, moved = await _due(address, count, started, lambda done: progress("due", done / count))
        finally:
            await platform.stop()
    return {"items": float(count), "parks_per_s": count / parks, "due_per_s": moved / seconds}


async def _park(address: str, count: int, due: float, done: Callable[[int], None]) -> None:
    """Parks all items; the first park that fails ends it."""
    kind = Kind("bench_nobody", 2, "", "tenant")
    now = time.time()
    numbers = iter(range(0, count, BATCH))

    async def parker(client: DelayClient) -> None:
        for first in numbers:
            batch = range(first, min(count, first + BATCH))
            await client.park(
                [
                    Parked("bench", f"bench/0/{n}", kind, PAYLOAD, due, now, partition="0", position=n, n=1)
                    for n in batch
                ]
            )
            done(first)

    client = DelayClient(address)
    try:
        await asyncio.gather(*(parker(client) for _ in range(AT_ONCE)))
    finally:
        await client.close()


async def _due(address: str, count: int, started: float, done: Callable[[int], None]) -> tuple[float, int]:
    """Seconds from the first look that shows any item due to the last item, and the number that came in that time. When
    that look shows all of them, it counts from `started`, the node's start: the rate is at least so high."""
    client = DelayClient(address)
    began, first, seen = 0.0, 0, 0
    try:
        while seen < count:
            depths = await client.depth()
            seen = sum(depth.items for depth in depths if depth.stream == "due.bench_nobody")
            now = time.perf_counter()
            done(seen)
            if seen and not began:
                began, first = now, seen
            await asyncio.sleep(0.02)
    finally:
        await client.close()
    return (now - started, seen) if seen == first else (now - began, seen - first)
