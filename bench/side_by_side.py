"""Runs one stream in several forms, one after the other and in turns: the cost of a form is its median rate against
that of the first one, on the same machine in the same minutes."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..assembly.embedded import EmbeddedStores
from ..assembly.platform import Platform
from ..model.errors import TailraceError
from ..model.overview import Overview, TailerOverview
from ..stores.log.log import Record
from ..wire.gateway import GatewayClient
from .percentiles import median
from .process import cpu_by_name
from .workload import write_tailer

#: Runs of each form.
ROUNDS = 3
#: A run ends as failed when it takes longer than it would at so many items a second, and so many seconds.
SLOWEST = 2_000
PATIENCE = 30.0
#: Seconds between looks at a run. A look is work of the process that is measured, and costs more the more its tailers
#: have to tell, so there are few; a rate is taken between two looks, so it is as exact with few as with many.
LOOK_EVERY = 0.5


class FormCost(NamedTuple):
    """Cost of one form: healthy items a second, and the CPU of each process for one of them, microseconds, which
    includes the CPU for the failing ones until they were dead."""

    rate: float
    cpu: dict[str, float]


@dataclass(frozen=True, slots=True)
class ComparedForm:
    """A form of the stream, to be compared. `records` fill its stream, `tailer` is its file; of `items` in all so many
    are `healthy`, which are timed."""

    name: str
    records: Callable[[], Iterator[list[Record]]]
    tailer: str
    items: int
    healthy: int


async def compare(
    folder: Path, stream: str, module: str, forms: Sequence[ComparedForm], progress: Callable[[str, float], None]
) -> dict[str, FormCost]:
    """Costs of each form: medians of ROUNDS runs, every one with data of its own. Raises TailraceError when one does
    not end in a bounded time."""
    runs: dict[str, list[FormCost]] = {form.name: [] for form in forms}
    for number in range(ROUNDS):
        for place, form in enumerate(forms):
            progress(form.name, (number * len(forms) + place) / (ROUNDS * len(forms)))
            data = folder / f"{form.name}-{number}"
            async with EmbeddedStores(data) as stores:
                for batch in form.records():
                    await stores.log.append(stream, 0, batch)
            platform = Platform(data, [module], tailers=[write_tailer(folder, form.tailer)])
            runs[form.name].append(await _run(platform, form))
            shutil.rmtree(data)
    return {name: _median(found) for name, found in runs.items()}


def _median(runs: Sequence[FormCost]) -> FormCost:
    processes = runs[0].cpu
    return FormCost(
        median([run.rate for run in runs]), {name: median([run.cpu[name] for run in runs]) for name in processes}
    )


async def _run(platform: Platform, form: ComparedForm) -> FormCost:
    """Measures from the first look that shows a settled item to the last look before all are. Ends when all failed
    items are dead, too."""
    await platform.start()
    try:
        async with GatewayClient(platform.gateway_address) as gateway:
            until = time.monotonic() + PATIENCE + form.items / SLOWEST
            began, first, rate, over = 0.0, 0, 0.0, False
            before: dict[str, float] = {}
            while True:
                await asyncio.sleep(LOOK_EVERY)
                overview = await gateway.overview()
                tailer, now = named(overview, "bench"), time.perf_counter()
                if tailer.settled and not began:
                    began, first, before = now, tailer.settled, cpu_by_name(platform.pids())
                over = over or tailer.settled >= form.healthy
                if tailer.settled > first and not (over and rate):  # of a run that is over within a look, all of it
                    rate = (tailer.settled - first) / (now - began)
                if over and overview.dead_letters >= form.items - form.healthy:
                    used, items = cpu_by_name(platform.pids()), max(1, form.healthy - first)
                    return FormCost(
                        rate, {name: round(1e6 * (used[name] - before[name]) / items, 2) for name in before}
                    )
                if time.monotonic() > until:
                    raise TailraceError(
                        f"{form.name}: {tailer.settled} of {form.healthy} settled, {overview.dead_letters} of "
                        f"{form.items - form.healthy} dead; the tailer is {tailer.state} {tailer.detail}".rstrip()
                    )
    finally:
        await platform.stop()


def named(overview: Overview, name: str) -> TailerOverview:
    """The tailer of this name in an overview."""
    return next(tailer for tailer in overview.tailers if tailer.name == name)
