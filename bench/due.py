"""The scenario `due`: the lateness of workloads that rest in the queue until their times; ten thousand fall due every
second, over a hundred functions."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

from ..assembly.embedded import EmbeddedStores
from ..assembly.platform import Platform
from ..assembly.settings import ConfigDirectory
from ..model.errors import TailraceError
from ..model.priority import DEFAULT_PRIORITY
from ..model.workload import Kind
from ..stores.config import StoresConfig
from ..stores.queue.queue import NewItem
from .due_functions import DUE_FUNCTIONS, FOLDER_VARIABLE, latenesses
from .figures import Figures, Progress
from .percentiles import percentile
from .process import cpu_by_name
from .queue_engines import configured
from .workload import TENANTS

FUNCTIONS = "tailrace.bench.due_functions"
#: Items that fall due each second, evenly.
RATE = 10_000
#: Items of a trial that measures how fast the queue fills; they are due so many seconds later, after the run.
TRIAL, MUCH_LATER = 5_120, 30 * 86_400.0
#: Filling takes at most so many times as long as the trial says, and the start so many seconds: the first item is due
#: after both.
SLOWER, STARTED_WITHIN = 3.0, 20.0
#: Seconds after the last item was due in which all are to have started.
PATIENCE = 120.0
#: A time of microseconds loses less than one on its way through a float: so early is not early.
EXACT = 2e-6


async def due(folder: Path, seconds: float, progress: Progress, engine: str = "sqlite") -> Figures:
    """Measures with so many seconds' worth of items. `p50_s`, `p95_s`, `p99_s`, `slowest_s`: from an item's time to its
    start, by this machine's wall clock, which the store's server shares; `early`: number that started before. Raises
    TailraceError when they cannot be put in before the first is due, or do not start in a bounded time."""
    count = int(seconds * RATE)
    journal = folder / "latenesses"
    journal.mkdir()
    with configured(folder, engine) as config:
        settings = ConfigDirectory(config).read("stores.yaml", StoresConfig)
        async with EmbeddedStores(folder / "data", settings) as stores:
            progress("filling the queue", 0.0)
            began = time.perf_counter()
            for batch in timed_items(TRIAL, time.time() + MUCH_LATER):
                await stores.queue.submit(batch)
            an_item = (time.perf_counter() - began) / TRIAL
            first = time.time() + SLOWER * count * an_item + STARTED_WITHIN
            for number, batch in enumerate(timed_items(count, first)):
                await stores.queue.submit(batch)
                progress("filling the queue", number * 256 / count)
        platform = Platform(folder / "data", [FUNCTIONS], config, environment={FOLDER_VARIABLE: str(journal)})
        await platform.start()
        try:
            if time.time() > first:
                raise TailraceError(
                    f"{count} items could not be put in before the first was due: the machine became slow"
                )
            progress("waiting for the first", 1.0)
            await asyncio.sleep(max(0.0, first - time.time() - 0.5))
            before = cpu_by_name(platform.pids())
            late = await _all_started(journal, count, first, progress)
            after = cpu_by_name(platform.pids())
        finally:
            await platform.stop()
    cpu = {f"{name}_cpu_us_per_item": round(1e6 * (used - before[name]) / count, 2) for name, used in after.items()}
    return {"rate_per_s": float(RATE), "items": float(count), **summary(late), **cpu}


def timed_items(count: int, first: float, seed: int = 1) -> Iterator[list[NewItem]]:
    """Items due from `first` on (wall clock), RATE of them each second, in batches of 256: functions and tenants in
    random order, each payload with its own time."""
    pick = random.Random(seed)
    kinds = [
        Kind(f"due_{function:03}", int(DEFAULT_PRIORITY), "", f"tenant-{tenant:02}")
        for function in range(DUE_FUNCTIONS)
        for tenant in range(TENANTS)
    ]
    for begin in range(0, count, 256):
        times = [first + number / RATE for number in range(begin, min(count, begin + 256))]
        yield [NewItem(pick.choice(kinds), b'{"due": %.6f}' % when, round(when, 6)) for when in times]


def summary(late: list[float]) -> Figures:
    """The figures of the items' lateness, given in seconds."""
    shares = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99, "slowest_s": 1.0}
    found = {name: round(percentile(late, share), 4) for name, share in shares.items()}
    return {**found, "early": float(sum(each < -EXACT for each in late))}


async def _all_started(journal: Path, count: int, first: float, progress: Progress) -> list[float]:
    over = first + count / RATE
    while len(late := latenesses(journal)) < count:
        if time.time() > over + PATIENCE:
            raise TailraceError(f"only {len(late)} of {count} items started within {PATIENCE:.0f} s of their time")
        progress("falling due", len(late) / count)
        await asyncio.sleep(0.25)
    return late
