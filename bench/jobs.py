"""The scenario `jobs`: a client fills a tree of two stages, has it run, and waits for its end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import tailrace

from ..assembly.platform import Platform
from ..model.errors import TailraceError
from ..model.job import TreeStatus
from .figures import Figures, Progress
from .process import cpu_by_name
from .queue_engines import configured

FUNCTIONS = "tailrace.bench.job_functions"
#: Items of the tree that runs before the one that is measured.
WARM_UP = 2000
#: Seconds in which a tree must be complete: for each thousand items, and at least.
PATIENCE, AT_LEAST = 5.0, 60.0


async def jobs(folder: Path, count: int, progress: Progress, engine: str = "sqlite") -> Figures:
    """Runs a tree of so many items in its first stage. Raises TailraceError when its results are not one of each.

    add_many_per_s  until the last item is durable; none runs meanwhile, since the tree is paused
    items_per_s     through both stages, from the resumption to the end; each item counts once
    noticed_ms      from the end of the last item to that of the tree, by the store's clock
    told_ms         from that to the client that waits for it
    """
    with configured(folder, engine) as config:
        platform = Platform(folder / "data", [FUNCTIONS], config)
        await platform.start()
        try:
            async with tailrace.AsyncClient(platform.gateway_address) as client:
                await _run(client, WARM_UP, progress)
                before = cpu_by_name(platform.pids())
                figures = await _run(client, count, progress)
                after = cpu_by_name(platform.pids())
        finally:
            await platform.stop()
    cpu = {f"{name}_cpu_us_per_item": round(1e6 * (used - before[name]) / count, 2) for name, used in after.items()}
    return figures | cpu


async def _run(client: tailrace.AsyncClient, count: int, progress: Progress) -> Figures:
    job = client.job("bench", "bench_first")
    job.then("bench_second")
    await job.pause()
    progress("filling the job", 0.0)
    began = time.perf_counter()
    await job.add_many({"n": number} for number in range(count))
    filled = time.perf_counter() - began
    await job.seal()
    began, wall = time.perf_counter(), time.time()
    await job.resume()
    status, seen = await _over(job, count, progress)
    seconds, told = time.perf_counter() - began, time.time()
    numbers = sorted([value async for value in job.results()])
    if numbers != [*range(count)]:
        raise TailraceError(f"a tree of {count} items has {len(numbers)} results, which are not one of each")
    last = max(each.complete_at for each in status.jobs)
    return {
        "items": float(count),
        "seconds": round(seconds, 3),
        "items_per_s": round(count / (last - wall), 1),
        "add_many_per_s": round(count / filled, 1),
        "noticed_ms": round(1e3 * max(0.0, status.complete_at - last), 3),
        "told_ms": round(1e3 * (told - status.complete_at), 3),
        "looks": float(seen),
    }


async def _over(job: tailrace.AsyncJob, count: int, progress: Progress) -> tuple[TreeStatus, int]:
    """Waits for the end of a job. Returns its last status, and the number of looks at it."""
    end, looks = time.monotonic() + max(AT_LEAST, PATIENCE * count / 1000), 0
    while time.monotonic() < end:
        looks += 1
        try:
            return await job.wait(1.0), looks
        except TimeoutError:
            progress("running", (await job.status()).succeeded / (2 * count))
            await asyncio.sleep(0)
    raise TailraceError(f"a tree of {count} items was not complete in its time")
