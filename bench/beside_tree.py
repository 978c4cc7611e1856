"""The scenario `beside_tree`: the wait of a lone interactive item for its start beside a running tree of very many
items, against its wait alone.

200 submissions a second, first on a platform without a tree. Then a tree of two stages is filled behind a gate that
holds its functions, and the gate is shut and opened in turns: the same submissions beside a tree that waits, and beside
one that runs.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import tailrace

from ..assembly.platform import Platform
from ..model.errors import TailraceError
from ..model.gate import Gate
from ..wire.gateway import GatewayClient
from . import jobs
from .figures import Figures, Progress
from .percentiles import percentile
from .queue_engines import configured
from .scenarios import FUNCTIONS, each_item, paced, work_of

#: The functions of the tree, one behind the other.
STAGES = ("bench_first", "bench_second")
#: Turns of the tree that waits and the tree that runs.
ROUNDS = 3
#: Seconds of one measurement, most and least, and items of the tree for each second: so many run on two cores.
LONGEST, SHORTEST, EACH_SECOND = 10.0, 1.0, 50_000
#: Items that must have ended before a tree counts as one that runs.
BEGUN = 1000
#: Seconds in which nothing ends of a tree that stands still.
STILL = 1.0
#: Seconds in which a tree must begin to run.
BEGINS_WITHIN = 60.0


async def beside_tree(folder: Path, count: int, progress: Progress, engine: str = "sqlite") -> Figures:
    """`alone_…_ms`, `waiting_…_ms` and `beside_…_ms`, p50 and p99 from the time at which each was due to be sent to its
    start; `ratio`: of the p99 beside the tree that runs, to that alone; `waiting_ratio`: of the one beside the tree
    that waits, to that alone; `tree_items_per_s`: of the tree meanwhile, each item counted once for each stage. Raises
    TailraceError when the tree is over before the last measurement is: ask for more items."""
    seconds = min(LONGEST, max(SHORTEST, count / EACH_SECOND))
    starts_file = folder / "starts"
    with configured(folder, engine) as config:
        environment = {"TAILRACE_BENCH_STARTS": str(starts_file)}
        platform = Platform(folder / "data", [FUNCTIONS, jobs.FUNCTIONS], config, environment=environment)
        await platform.start()
        try:
            async with (
                tailrace.AsyncClient(platform.gateway_address, timeout=60) as client,
                GatewayClient(platform.gateway_address) as operator,
            ):

                async def send(due: float) -> None:
                    await client.submit("bench_start", sent=due)

                async def measured(what: str) -> list[float]:
                    return await paced(send, seconds, starts_file, progress, what)

                waits = {"alone": await measured("alone"), "waiting": [], "beside": []}
                await _gates(operator, "pause")
                job = await _filled(client, count, progress)
                pace: list[float] = []
                work: Figures = {}
                for _ in range(ROUNDS):
                    await _still(job)
                    waits["waiting"] += await measured("beside a tree that waits")
                    await _gates(operator, "resume")
                    before = await _running(job)
                    began, used = time.perf_counter(), work_of(platform)
                    found = await measured("beside a tree that runs")
                    waits["beside"] += found
                    ended = await _ended(job)
                    pace.append((ended - before) / (time.perf_counter() - began))
                    work = each_item("beside_", used, work_of(platform), ended - before)
                    await _gates(operator, "pause")
        finally:
            await platform.stop()
    return {"items": float(count), "seconds": seconds, **compared(waits), "tree_items_per_s": min(pace), **work}


def compared(waits: dict[str, list[float]]) -> Figures:
    """The figures of the three measurements."""
    figures: Figures = {}
    for name, each in waits.items():
        figures |= {f"{name}_p{share}_ms": 1e3 * percentile(each, share / 100) for share in (50, 99)}
    figures["waiting_ratio"] = figures["waiting_p99_ms"] / figures["alone_p99_ms"]
    figures["ratio"] = figures["beside_p99_ms"] / figures["alone_p99_ms"]
    return figures


async def _gates(operator: GatewayClient, action: str) -> None:
    for function in STAGES:
        await operator.set_gate(Gate(function, "", action, "bench", "measuring"))


async def _filled(client: tailrace.AsyncClient, count: int, progress: Progress) -> tailrace.AsyncJob:
    job = client.job("bench", STAGES[0])
    job.then(STAGES[1])
    progress("filling the tree", 0.0)
    await job.add_many({"n": number} for number in range(count))
    await job.seal()
    return job


async def _still(job: tailrace.AsyncJob) -> None:
    """Waits until no item of the job ends any more: those that were out when the gate was shut have ended then."""
    before = -1
    while (ended := await _ended(job)) != before:
        before = ended
        await asyncio.sleep(STILL)


async def _running(job: tailrace.AsyncJob) -> int:
    """Waits until the job runs. Returns the number of its items that have ended. Raises TailraceError when it does
    not."""
    end, first = time.monotonic() + BEGINS_WITHIN, await _ended(job)
    while (ended := await _ended(job)) < first + BEGUN:
        if time.monotonic() > end:
            raise TailraceError(f"a tree whose gate was opened did not run within {BEGINS_WITHIN:.0f} s")
    return ended


async def _ended(job: tailrace.AsyncJob) -> int:
    """Number of items that have ended. Raises TailraceError when all have."""
    status = await job.status()
    if status.over:
        raise TailraceError("the tree was over before all was measured beside it: ask for more --items")
    return status.succeeded
