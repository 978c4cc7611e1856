"""The scenarios of submission: the rate at which a gateway takes work, the delay of urgent work by bulk, and the cost
of a store that is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import tailrace

from ..assembly.platform import Platform
from ..foundation.lifecycle import cancel
from ..model.gate import Gate
from ..wire.gateway import GatewayClient
from .faults.proxy import FaultProxy
from .figures import Figures, Progress
from .flood import flood
from .functions import numbers_seen
from .percentiles import percentile
from .scenarios import FUNCTIONS, paced

#: Calls at once in `single_per_s`, and workloads in `many_per_s` for each of the single ones.
AT_ONCE, MANY = 64, 5
#: Workloads that another program submits at once, in `bulk`.
BULK = 10_000
#: Seconds that the store is away, and seconds in all, in `store_down`.
DOWN, PERIOD = 60.0, 300.0
#: Seconds in which a submission is to be accepted, and in which all of them are to have run at last.
ACCEPTED_WITHIN, RUN_WITHIN = 10.0, 300.0


async def submit(folder: Path, count: int, progress: Progress, config: Path | None = None) -> Figures:
    """Makes `count` lone submissions, 64 at once, then five times as many by `submit_many`; durable, and none of them
    runs meanwhile (its function is paused)."""
    platform = Platform(folder / "data", [FUNCTIONS], config)
    await platform.start()
    try:
        async with GatewayClient(platform.gateway_address) as operator:
            await operator.set_gate(Gate("noop_000", "", "pause", "bench", "measuring"))
        async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:
            left = iter(range(count))

            async def one_by_one() -> None:
                for number in left:
                    await client.submit("noop_000")
                    if number % 500 == 0:
                        progress("one by one", number / count)

            single = await _seconds(lambda: _together(one_by_one, AT_ONCE))
            progress("many at once", 0.0)
            calls = [tailrace.Call("noop_000")] * (MANY * count)
            many = await _seconds(lambda: client.submit_many(calls))
    finally:
        await platform.stop()
    return {"items": float(count), "single_per_s": count / single, "many_per_s": MANY * count / many}


async def bulk(folder: Path, seconds: float, progress: Progress, config: Path | None = None) -> Figures:
    """Makes 200 interactive submissions a second alone, then as many while another team's program submits 10,000 at
    once; `bulk_s`: seconds that this took."""
    starts_file = folder / "starts"
    platform = Platform(folder / "data", [FUNCTIONS], config, environment={"TAILRACE_BENCH_STARTS": str(starts_file)})
    await platform.start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address, timeout=60) as client:

            async def send(due: float) -> None:
                await client.submit("bench_start", sent=due)

            alone = await paced(send, seconds, starts_file, progress, "alone")
            async with flood(platform.gateway_address, BULK) as other:

                async def submit_in_bulk() -> float:
                    await asyncio.sleep(1 + seconds / 4)
                    return await other.submit()

                flooding = asyncio.create_task(submit_in_bulk())
                try:
                    beside = await paced(send, seconds, starts_file, progress, "beside bulk")
                    took = await flooding
                finally:
                    await cancel(flooding)
    finally:
        await platform.stop()
    quiet, busy = (1e3 * percentile(each, 0.99) for each in (alone, beside))
    return {"alone_p99_ms": quiet, "beside_bulk_p99_ms": busy, "ratio": busy / quiet, "bulk_s": took}


async def store_down(
    folder: Path,
    count: int,
    progress: Progress,
    stores: Callable[[str], str],
    address: str,
    *,
    down: float = DOWN,
    period: float = PERIOD,
) -> Figures:
    """Spreads `count` submissions over one period, in the middle of which the store is away for `down` seconds.
    `address` is the store's HOST:PORT; `stores` makes stores.yaml of the address that the platform is to use."""
    proxy = FaultProxy(address)
    await proxy.start()
    config, seen = folder / "config", folder / "numbers"
    config.mkdir(exist_ok=True)
    (config / "stores.yaml").write_text(stores(proxy.address))
    platform = Platform(folder / "data", [FUNCTIONS], config, environment={"TAILRACE_BENCH_STARTS": str(seen)})
    try:
        await platform.start()
        async with tailrace.AsyncClient(platform.gateway_address, timeout=ACCEPTED_WITHIN) as client:
            failing = asyncio.create_task(_away(proxy, (period - down) / 2, down))
            try:
                accepted = await _spread(client, count, period, progress)
                await failing
            finally:
                await cancel(failing)
            await _all_ran(seen, len(accepted), progress)
    finally:
        await platform.stop()
        await proxy.stop()
    ran = numbers_seen(seen)
    return {
        "items": float(count),
        "accepted_share": sum(each.took <= ACCEPTED_WITHIN for each in accepted) / count,
        "slowest_s": max((each.took for each in accepted), default=0.0),
        "spooled": float(sum(each.spooled for each in accepted)),
        "lost": float(len(accepted) - len(set(ran))),
        "ran_again": float(len(ran) - len(set(ran))),
    }


class _Accepted(NamedTuple):
    """One submission: seconds until it was answered, and whether it was spooled."""

    took: float
    spooled: bool


async def _spread(client: tailrace.AsyncClient, count: int, period: float, progress: Progress) -> list[_Accepted]:
    """Submits `count` evenly over `period` seconds. Returns those that were accepted."""
    accepted: list[_Accepted] = []
    began = time.perf_counter()

    async def submit_one(number: int) -> None:
        await asyncio.sleep(max(0.0, began + number * period / count - time.perf_counter()))
        asked = time.perf_counter()
        with suppress(tailrace.TailraceError):
            handle = await client.submit("bench_number", number=number)
            accepted.append(_Accepted(time.perf_counter() - asked, handle.spooled))

    for start in range(0, count, 1000):
        progress("submitting", start / count)
        await asyncio.gather(*map(submit_one, range(start, min(count, start + 1000))))
    return accepted


async def _away(proxy: FaultProxy, after: float, seconds: float) -> None:
    await asyncio.sleep(after)
    proxy.refuse()
    await asyncio.sleep(seconds)
    proxy.heal()


async def _all_ran(seen: Path, count: int, progress: Progress) -> None:
    """Waits until that many have run, or it is too late for them."""
    until = time.perf_counter() + RUN_WITHIN
    while (ran := len(set(numbers_seen(seen)))) < count and time.perf_counter() < until:
        progress("running", ran / count)
        await asyncio.sleep(0.1)


async def _seconds(work: Callable[[], Coroutine[object, object, object]]) -> float:
    began = time.perf_counter()
    await work()
    return max(time.perf_counter() - began, 1e-9)


async def _together(work: Callable[[], Coroutine[object, object, None]], count: int) -> None:
    await asyncio.gather(*(work() for _ in range(count)))
