"""The scenario `backlog`: the cost of a claim with ten million items waiting, against ten thousand.

Two queues of one server (or two files) hold the one and the other, of the same functions and tenants, all items due.
They are claimed from in turns, so that both meet the same minutes of the machine; claimed items are settled and as many
put in again, so that a backlog stays as long as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ..assembly.embedded import QUEUE_FILE, STAMPED, EmbeddedStores
from ..model.demand import Cell, Demand
from ..model.errors import InvalidRequest, TailraceError
from ..model.priority import DEFAULT_PRIORITY
from ..stores.config import StoresConfig
from ..stores.queue.engines import OpenQueue
from ..stores.restored import Stamp
from .figures import Figures, Progress
from .percentiles import median
from .process import cpu_clock, descendants
from .queue_engines import ENGINES, NODES
from .server_node import running
from .workload import items

#: Items of the short backlog, and functions in each of the two.
FEW, FUNCTIONS = 10_000, 20
#: Items of one claim, as a tailer's; claims in a row of one queue, and how often the queues take turns.
CLAIM, CLAIMS, ROUNDS = 256, 8, 40
LEASE = 60.0


@dataclass(slots=True)
class Costs:
    """Costs of claims, one number for each: seconds of waiting, and of CPU of this process and the server together."""

    took: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BacklogPlace:
    """The place of queues on an engine. `queue`: the value of `queue` in stores.yaml, by the queue's name; `cpu`: CPU
    seconds so far of all processes that a claim uses; `add_twins` gives each waiting item so many twins (`backlogs/`).
    """

    queue: Callable[[str], dict[str, object]]
    cpu: Callable[[], float]
    add_twins: Callable[[str, int, Callable[[float], None]], Awaitable[None]]


@contextlib.contextmanager
def place_of(folder: Path, engine: str) -> Iterator[BacklogPlace]:
    """The place of queues on this engine: in the folder, or on a server of their own in it."""
    if engine not in ENGINES:
        raise InvalidRequest(f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}")
    if engine not in NODES:
        yield BacklogPlace(lambda name: {"engine": engine}, time.process_time, partial(add_to_file, folder))
        return
    with running(NODES[engine], folder / engine) as node:
        apart = {"postgres": "schema", "redis": "prefix"}[engine]

        def cpu() -> float:
            return time.process_time() + sum(map(cpu_clock, descendants(node.pid)))

        def queue(name: str) -> dict[str, object]:
            return {"engine": engine, "url": node.url, apart: name}

        async def add_twins(name: str, times: int, done: Callable[[float], None]) -> None:
            if engine == "postgres":
                from .backlogs.postgres import add_twins
            else:
                from .backlogs.redis import add_twins  # each needs its extra
            await add_twins(queue(name), times, done)

        yield BacklogPlace(queue, cpu, add_twins)


async def add_to_file(folder: Path, name: str, times: int, done: Callable[[float], None]) -> None:
    """Adds twins in a file of SQLite, and stamps it so that the next process to open it leases at once."""
    from .backlogs.sqlite import add_twins

    await asyncio.to_thread(add_twins, folder / name / QUEUE_FILE, times, done)
    # Or the file would be taken for one that was put back, of which nothing is leased for a while.
    Stamp(folder / name, STAMPED).opened()


async def backlog(folder: Path, count: int, progress: Progress, engine: str = "sqlite") -> Figures:
    """`claim_us` and `few_claim_us`: the median wait for a claim of 256 items with `count` waiting and with FEW; their
    `ratio`; `cpu_ratio`: that of the means of their CPU, server and client; `loaded_per_s`. Raises TailraceError when a
    claim does not get all that it may."""
    sizes = {"many": max(1, count // FEW) * FEW, "few": FEW}
    with place_of(folder, engine) as place:
        began = time.perf_counter()
        for name, size in sizes.items():
            await _load(folder / name, place, name, size, progress)
        loaded = time.perf_counter() - began
        costs = {name: Costs() for name in sizes}
        async with contextlib.AsyncExitStack() as stack:
            queues = {name: await stack.enter_async_context(opened_in(folder / name, place, name)) for name in costs}
            for name, size in sizes.items():
                if (waiting := (await queues[name].counts())["new"]) != size:
                    raise TailraceError(f"{waiting} items wait in the queue of {size}")
            for number in range(-1, ROUNDS):
                progress("claiming in turns", max(0, number) / ROUNDS)
                for name, queue in queues.items():
                    # The first turn warms up, and is not counted.
                    await _turn(queue, costs[name] if number >= 0 else Costs(), place.cpu)
    return {"items": float(sizes["many"]), "loading_s": round(loaded, 1), **compared(costs["few"], costs["many"])}


def compared(few: Costs, many: Costs) -> Figures:
    """The figures of both queues."""
    waits = [1e6 * median(each.took) for each in (few, many)]
    cpu = [1e6 * sum(each.cpu) / len(each.cpu) for each in (few, many)]
    return {
        "few_claim_us": round(waits[0], 1),
        "claim_us": round(waits[1], 1),
        "ratio": round(waits[1] / waits[0], 3),
        "few_claim_cpu_us": round(cpu[0], 1),
        "claim_cpu_us": round(cpu[1], 1),
        "cpu_ratio": round(cpu[1] / cpu[0], 3),
    }


async def _load(data: Path, place: BacklogPlace, name: str, count: int, progress: Progress) -> None:
    """Puts FEW items in by the queue's own submission, so that its rows are the usual ones, and then their twins."""
    async with opened_in(data, place, name) as queue:
        for batch in items(FEW, FUNCTIONS, size=FEW):
            await queue.submit(batch)
    if twins := count // FEW - 1:
        await place.add_twins(name, twins, lambda share: progress("filling the long queue", share))


@contextlib.asynccontextmanager
async def opened_in(data: Path, place: BacklogPlace, name: str) -> AsyncIterator[OpenQueue]:
    """The queue of this name, open, in stores of its own."""
    async with stores_in(data, place, name) as stores:
        yield stores.queue


@contextlib.asynccontextmanager
async def stores_in(data: Path, place: BacklogPlace, name: str) -> AsyncIterator[EmbeddedStores]:
    """Stores whose queue is the one of this name, open."""
    config = StoresConfig.model_validate({"queue": place.queue(name), "max_waiting": 1 << 40})
    async with EmbeddedStores(data, config) as stores:
        yield stores


async def _turn(queue: OpenQueue, costs: Costs, cpu: Callable[[], float]) -> None:
    """Times some claims; then settles the claimed items, and puts in as many."""
    demand = Demand({Cell(f"noop_{number:03}", int(DEFAULT_PRIORITY)): CLAIM for number in range(FUNCTIONS)})
    demand.total = CLAIM
    taken = []
    for _ in range(CLAIMS):
        spent, began = cpu(), time.perf_counter()
        leased = await queue.lease(demand, LEASE, 0.0)
        costs.took.append(time.perf_counter() - began)
        costs.cpu.append(cpu() - spent)
        if leased is None or len(leased.ids) < CLAIM:
            raise TailraceError(f"a claim of {CLAIM} items got {0 if leased is None else len(leased.ids)}")
        taken.append(leased)
    for leased in taken:
        await queue.settle(leased.fence, leased.ids, [])
    for batch in items(CLAIM * CLAIMS, FUNCTIONS):
        await queue.submit(batch)
