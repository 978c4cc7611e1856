"""The scenario `neighbours`: the wait of steady tenants' items for their start beside one tenant's flood, and beside a
function that fails always, against their wait alone; and whether tenants that all have much waiting get their shares.

Each form is a platform of its own with data of its own; forms take turns. One worker with few slots, runs of ten
milliseconds: a neighbour takes slots, and not the machine's processors.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from ..assembly.embedded import EmbeddedStores
from ..assembly.platform import Platform
from ..model.errors import TailraceError
from ..model.priority import DEFAULT_PRIORITY
from ..model.workload import Kind
from ..sdk.async_client import AsyncClient
from ..stores.log.log import Record
from ..stores.queue.queue import NewItem
from ..stores.remote import RemoteLog
from .figures import Figures, Progress
from .neighbours_functions import TAKES, Start, started
from .percentiles import percentile

#: Slots of the one worker, and those of them that the tenant with the flood may have.
SLOTS, FLOODED = 16, 12
#: Tenants that are steady, and items that all of them send in a second.
STEADY, RATE = 49, 196
#: Seconds of warm-up, and rounds in which the forms take turns.
WARM_UP, ROUNDS = 2.0, 3
#: Tenants with their weights that compete for all slots; seconds left out at their beginning, and seconds counted.
WEIGHTS, BEGINNING, COUNTED = {"light": 1.0, "middle": 2.0, "heavy": 4.0}, 1.0, 8.0
#: Records that the tailer reads ahead: more than any flood, which so is "below the window".
WINDOW = 65_536
STREAM = "neighbours"
TAILER = f"""\
name: neighbours
source: {{kind: log, stream: {STREAM}}}
function: {{header: function}}
tenant: {{header: tenant}}
priority: user_visible
window: {{items: {WINDOW}}}
"""
QUOTAS = {
    "quotas": [
        {"function": "neighbour", "tenant": "flood", "concurrency": FLOODED},
        {"function": "neighbour", "per": "tenant", "weight": 1.0},
        *({"function": "neighbour", "tenant": tenant, "weight": weight} for tenant, weight in WEIGHTS.items()),
    ]
}


class Prefilled(NamedTuple):
    """Items that wait before the platform starts."""

    function: str
    tenant: str
    items: int


async def neighbours(folder: Path, seconds: float, progress: Progress) -> Figures:
    """Runs every form with queue and stream. `{source}_{form}_p99_ms`: of the steady tenants' items, from due to be
    sent until started, alone, beside a flood and beside a function that fails; `{source}_{form}_ratio`: against alone;
    `{source}_share_off_percent`: distance of the farthest tenant from its share by weight. `ratio` and
    `share_off_percent` are the worst."""
    flood = round(1.2 * FLOODED / TAKES * (WARM_UP + seconds))
    forms = {
        "alone": [],
        "flood": [Prefilled("neighbour", "flood", flood)],
        "failing": [Prefilled("neighbour_that_fails", "steady-0", flood)],
    }
    waits: dict[str, list[float]] = {f"{source}_{form}": [] for source in ("queue", "stream") for form in forms}
    done = 0
    for number in range(ROUNDS):
        for name, found in waits.items():
            source, _, form = name.partition("_")
            progress(f"{name}, round {number + 1}", done / (ROUNDS * len(waits) + 2))
            found += await _waits(folder / f"{name}-{number}", source, forms[form], seconds)
            done += 1
    figures: Figures = {}
    for source in ("queue", "stream"):
        progress(f"shares of the {source}", done / (ROUNDS * len(waits) + 2))
        alone = 1e3 * percentile(waits[f"{source}_alone"], 0.99)
        for form in forms:
            found = waits[f"{source}_{form}"]
            p99 = 1e3 * percentile(found, 0.99)
            figures |= {f"{source}_{form}_p50_ms": 1e3 * percentile(found, 0.5), f"{source}_{form}_p99_ms": p99}
            figures |= {f"{source}_{form}_ratio": p99 / alone} if found is not waits[f"{source}_alone"] else {}
        figures[f"{source}_share_off_percent"] = await _share_off(folder / f"{source}-shares", source)
        done += 1
    return figures | {
        "ratio": max(value for name, value in figures.items() if name.endswith("_ratio")),
        "share_off_percent": max(value for name, value in figures.items() if name.endswith("_share_off_percent")),
    }


async def _waits(folder: Path, source: str, backlogs: list[Prefilled], seconds: float) -> list[float]:
    """Waits of the steady items for their start, seconds, of those that were due to be sent after the warm-up."""
    async with _Neighbourhood(folder, source, backlogs) as place:
        await place.send_steadily(WARM_UP + seconds)
        found = await place.steady_starts(round(RATE * (WARM_UP + seconds)))
    shutil.rmtree(folder)
    return [start.late for start in sorted(found, key=lambda each: each.at - each.late)[round(RATE * WARM_UP) :]]


async def _share_off(folder: Path, source: str) -> float:
    """Distance of the farthest tenant from its share by weight, percent of that share."""
    whole, slots = sum(WEIGHTS.values()), (BEGINNING + COUNTED) * SLOTS / TAKES
    backlogs = [Prefilled("neighbour", name, round(1.2 * slots * each / whole)) for name, each in WEIGHTS.items()]
    async with _Neighbourhood(folder, source, backlogs) as place:
        while not (found := place.starts()):
            await asyncio.sleep(0.1)
        began = found[0].at + BEGINNING
        await asyncio.sleep(max(0.0, began + COUNTED - time.monotonic()) + 0.1)
        seen = Counter(start.tenant for start in place.starts() if began <= start.at < began + COUNTED)
    shutil.rmtree(folder)
    return max(abs(100 * seen[name] / seen.total() * whole / each - 100) for name, each in WEIGHTS.items())


class _Neighbourhood:
    """A platform with backlogs, and the starts that its functions noted."""

    def __init__(self, folder: Path, source: str, backlogs: list[Prefilled]) -> None:
        self._folder, self._source, self._backlogs = folder, source, backlogs
        config, tailer = folder / "configs", folder / "neighbours.yaml"
        config.mkdir(parents=True)
        (config / "quotas.yaml").write_text(json.dumps(QUOTAS))
        tailer.write_text(TAILER)
        self._starts = folder / "starts"
        self._platform = Platform(
            folder / "data",
            [f"{__package__}.neighbours_functions"],
            config,
            tailers=[tailer] if source == "stream" else [],
            environment={"TAILRACE_BENCH_STARTS": str(self._starts)},
            worker={"slots": SLOTS, "executors": 1},
        )

    async def __aenter__(self) -> _Neighbourhood:
        async with EmbeddedStores(self._folder / "data") as stores:
            for function, tenant, count in self._backlogs:
                for first in range(0, count, 256):
                    size = min(256, count - first)
                    if self._source == "queue":
                        kind = Kind(function, int(DEFAULT_PRIORITY), "", tenant)
                        await stores.queue.submit([NewItem(kind, b'{"sent": 0.0}')] * size)
                    else:
                        headers = (("function", function), ("tenant", tenant))
                        await stores.log.append(STREAM, 0, [Record(b'{"sent": 0.0}', "", headers)] * size)
        await self._platform.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._platform.stop()

    async def send_steadily(self, seconds: float) -> None:
        """Sends the items of the steady tenants, one after the other, each with the time when it was due to be sent."""
        if self._source == "queue":
            async with AsyncClient(self._platform.gateway_address) as client:

                async def submit(tenant: str, due: float) -> None:
                    await client.submit("neighbour", tenant=tenant, sent=due)

                await self._paced(submit, seconds)
            return
        async with RemoteLog(self._platform.store_address) as log:

            async def append(tenant: str, due: float) -> None:
                headers = (("function", "neighbour"), ("tenant", tenant))
                await log.append(STREAM, 0, [Record(json.dumps({"sent": due}).encode(), "", headers)])

            await self._paced(append, seconds)

    @staticmethod
    async def _paced(send: Callable[[str, float], Awaitable[None]], seconds: float) -> None:
        began = time.monotonic() + 0.05
        async with asyncio.TaskGroup() as tasks:
            for number in range(round(RATE * seconds)):
                due = began + number / RATE
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                tasks.create_task(_told(send(f"steady-{number % STEADY}", due)))

    def starts(self) -> list[Start]:
        """All starts so far."""
        return started(self._starts)

    async def steady_starts(self, count: int) -> list[Start]:
        """Starts of the steady tenants, once there are so many. Raises TailraceError when they do not come."""
        until = time.monotonic() + 30
        while len(found := [start for start in self.starts() if start.tenant.startswith("steady")]) < count:
            if time.monotonic() > until:
                raise TailraceError(f"only {len(found)} of {count} items of steady tenants started within 30 s")
            await asyncio.sleep(0.2)
        return found


async def _told(sending: Awaitable[None]) -> None:
    await sending
