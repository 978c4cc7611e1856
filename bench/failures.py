"""The scenarios of failing functions: the copies of an outage, the cost of poison for others; and the frontier
alone."""

from __future__ import annotations

import asyncio
import gc
import random
import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..assembly.embedded import EmbeddedStores
from ..assembly.platform import Platform
from ..model.overview import TailerOverview
from ..stores.log.log import Record
from ..tailers.rules.frontier import Frontier
from ..wire.gateway import GatewayClient
from .failing_functions import OUTAGE_VARIABLE
from .figures import Figures, Progress
from .functions import FUNCTIONS
from .side_by_side import ComparedForm, compare
from .workload import PAYLOAD, STREAM, TAILER, TENANTS, write_tailer

MODULE = "tailrace.bench.failing_functions"
#: One item in so many fails, in the poisoned half of `poison`.
ONE_IN = 100
#: An ordered partition gets one in so many of the items of `order`.
ONE_BY_ONE = 50
#: A position's settled state is written this often, as for 50,000 items a second and a checkpoint each second.
ENCODE_EVERY = 50_000

_OUTAGE_TAILER = f"""\
name: bench
source: {{kind: log, stream: {STREAM}}}
function: bench_outage
"""


async def outage(folder: Path, seconds: float, progress: Progress) -> Figures:
    """Runs a stream whose function fails every time for so long. Measures the items copied into the delay service, and
    the time until it goes on when the function works again."""
    count = 200_000
    async with EmbeddedStores(folder / "data") as stores:
        for first in range(0, count, 256):
            await stores.log.append(STREAM, 0, [Record(PAYLOAD)] * min(256, count - first))
    marker = folder / "outage"
    platform = Platform(
        folder / "data",
        [MODULE],
        tailers=[write_tailer(folder, _OUTAGE_TAILER)],
        environment={OUTAGE_VARIABLE: str(marker)},
    )
    await platform.start()
    try:
        async with GatewayClient(platform.gateway_address) as gateway:
            while (await _tailer(gateway)).settled < count // 10:
                await asyncio.sleep(0.02)
            before = (await _tailer(gateway)).parked
            marker.touch()  # the function was well before, as most are
            began = time.perf_counter()
            while (passed := time.perf_counter() - began) < seconds:
                progress("failing", passed / seconds)
                await asyncio.sleep(0.5)
            seen = await _tailer(gateway)
            marker.unlink()
            back = time.perf_counter()
            while (await _tailer(gateway)).settled < seen.settled + count // 10:
                await asyncio.sleep(0.05)
            resumed = time.perf_counter() - back
    finally:
        await platform.stop()
    return {
        "seconds": seconds,
        "items_waiting": float(count),
        "items_copied": float(seen.parked - before),
        "bytes_copied": float((seen.parked - before) * len(PAYLOAD)),
        "resumed_after_s": resumed,
    }


async def _tailer(gateway: GatewayClient) -> TailerOverview:
    overview = await gateway.overview()
    return next(tailer for tailer in overview.tailers if tailer.name == "bench")


async def poison(folder: Path, count: int, progress: Progress) -> Figures:
    """Runs one stream with no item failing and with one in a hundred, in turns, and measures the rate of the others. An
    item that fails is tried three times, a second apart, and is a dead letter in the end."""
    bad = sum(record.payload != PAYLOAD for batch in _records(count, ONE_IN) for record in batch)
    forms = [
        ComparedForm("none", partial(_records, count, 0), TAILER, count, count),
        ComparedForm("poison", partial(_records, count, ONE_IN), TAILER, count, count - bad),
    ]
    taken = await compare(folder, STREAM, MODULE, forms, progress)
    none, poisoned = taken["none"], taken["poison"]
    cpu = {
        **{f"{name}_cpu_us_per_item": used for name, used in none.cpu.items()},
        **{f"{name}_cpu_us_per_item_with_poison": used for name, used in poisoned.cpu.items()},
    }
    return {
        "items": float(count),
        "failing": float(bad),
        "healthy_per_s": none.rate,
        "healthy_per_s_with_poison": poisoned.rate,
        "ratio": poisoned.rate / none.rate,
        "cpu_ratio": sum(none.cpu.values()) / max(1e-9, sum(poisoned.cpu.values())),
        **cpu,
    }


async def order(folder: Path, count: int, progress: Progress) -> Figures:
    """Runs one stream with each `order`, in turns: as many keys as there are pairs of function and tenant. In a
    partition one item runs at a time, so that form gets fewer."""

    def filled(items: int) -> Iterator[list[Record]]:
        for batch in _records(items, 0):
            yield [record._replace(key="/".join(value for _, value in record.headers)) for record in batch]

    sizes = {"none": count, "key": count, "partition": max(1, count // ONE_BY_ONE)}
    forms = [
        ComparedForm(name, partial(filled, items), TAILER + "key: {record: true}\n" + f"order: {name}\n", items, items)
        for name, items in sizes.items()
    ]
    rates = {name: taken.rate for name, taken in (await compare(folder, STREAM, MODULE, forms, progress)).items()}
    figures = {f"{name}_per_s": rate for name, rate in rates.items()}
    return {"items": float(count)} | figures | {f"{name}_ratio": rates[name] / rates["none"] for name in rates}


def _records(count: int, one_in: int, seed: int = 1) -> Iterator[list[Record]]:
    """Records of 200 functions × 50 tenants, of the same size whether they fail or not."""
    pick = random.Random(seed)
    headers = [
        (("function", f"maybe_{number:03}"), ("tenant", f"tenant-{tenant:02}"))
        for number in range(FUNCTIONS)
        for tenant in range(TENANTS)
    ]
    fails = b'{"fail": true' + b" " * (len(PAYLOAD) - 14) + b"}"
    for first in range(0, count, 256):
        yield [
            Record(fails if one_in and pick.randrange(one_in) == 0 else PAYLOAD, "", pick.choice(headers))
            for _ in range(min(256, count - first))
        ]


async def frontier(folder: Path, count: int, progress: Progress) -> Figures:
    """Settles so many outstanding positions in random order, a thousand at a time. Measures time and memory of the rule
    alone, with the encoding of a checkpoint each second at 50,000 items a second."""
    order = list(range(count))
    random.Random(1).shuffle(order)
    batches = [order[first : first + 1000] for first in range(0, count, 1000)]
    progress("settling", 0.5)
    took = _settle(Frontier(0), count, batches)
    gc.collect()
    tracemalloc.start()
    _settle(Frontier(0), count, batches)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"positions": float(count), "us_per_item": 1e6 * took / count, "mb": peak / 1e6}


def _settle(rule: Frontier, count: int, batches: list[list[int]]) -> float:
    """Reads and settles; returns the CPU seconds."""
    began = time.process_time()
    for first in range(0, count, 1000):
        rule.read(range(first, min(count, first + 1000)))
    for number, batch in enumerate(batches):
        rule.settle(batch)
        rule.advance()
        if number * 1000 % ENCODE_EVERY == 0:
            rule.encode()
    assert rule.position == count, "everything is settled"
    return time.process_time() - began
