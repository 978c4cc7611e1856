"""The scenario `kinds`: the cost of a claim after very many collections and tenants were used once, against a queue in
which none was.

Two queues of one server (or two files) take turns, so that both meet the same minutes of the machine. In one of them
each of so many collections, with a tenant of its own, had one workload, which is over; in the other one as many of few
kinds are over. Both then get the same work of a few functions: in claims of 256, and alone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..model.demand import Cell, Demand
from ..model.errors import TailraceError
from ..model.priority import DEFAULT_PRIORITY
from ..model.workload import Kind
from ..stores.queue.engines import OpenQueue
from ..stores.queue.queue import NewItem
from .backlog import CLAIM, FUNCTIONS, LEASE, opened_in, place_of
from .figures import Figures, Progress
from .percentiles import median
from .workload import PAYLOAD, items

#: Claims, and lone items, of one queue in a row; how often the queues take turns.
CLAIMS, LONE, ROUNDS = 4, 20, 60


@dataclass(slots=True)
class ClaimCosts:
    """Costs of one queue: seconds and CPU of CLAIMS full claims with their submissions and settlements, for each turn;
    seconds from submission to claim, for each lone item."""

    took: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    lone: list[float] = field(default_factory=list)


async def kinds(folder: Path, count: int, progress: Progress, engine: str = "sqlite") -> Figures:
    """`ratio`: of the median times of CLAIMS claims, with their submissions and settlements, in the queue in which
    `count` kinds were used once, to the other; `lone_ratio`: of those of a lone item; `cpu_ratio`; `per_s`, `lone_ms`
    and both for the fresh queue. Raises TailraceError when a claim does not get the items put in."""
    turns = {"used": ClaimCosts(), "fresh": ClaimCosts()}
    with place_of(folder, engine) as place:
        async with contextlib.AsyncExitStack() as stack:
            queues = {name: await stack.enter_async_context(opened_in(folder / name, place, name)) for name in turns}
            began = time.perf_counter()
            for name, queue in queues.items():
                await _use(queue, count, progress, apart=name == "used")
            used_s = time.perf_counter() - began
            for number in range(-1, ROUNDS):
                progress("taking turns", max(0, number) / ROUNDS)
                for name, queue in queues.items():
                    # The first turn warms up, and is not counted.
                    await _turn(queue, turns[name] if number >= 0 else ClaimCosts(), place.cpu)
    return {"kinds": float(count), "used_s": round(used_s, 1), **compared(turns["fresh"], turns["used"])}


def compared(fresh: ClaimCosts, used: ClaimCosts) -> Figures:
    """The figures of both queues."""
    took, lone = ([median(each) for each in pair] for pair in ((fresh.took, used.took), (fresh.lone, used.lone)))
    cpu = [sum(each) / len(each) for each in (fresh.cpu, used.cpu)]
    return {
        "fresh_per_s": round(CLAIM * CLAIMS / took[0]),
        "per_s": round(CLAIM * CLAIMS / took[1]),
        "ratio": round(took[1] / took[0], 3),
        "fresh_lone_ms": round(1e3 * lone[0], 3),
        "lone_ms": round(1e3 * lone[1], 3),
        "lone_ratio": round(lone[1] / lone[0], 3),
        "cpu_ratio": round(cpu[1] / cpu[0], 3),
    }


async def _use(queue: OpenQueue, count: int, progress: Progress, *, apart: bool) -> None:
    """Submits and settles so many workloads, each of a kind of its own where they are `apart`."""
    for first in range(0, count, CLAIM):
        batch = [NewItem(_kind(number, apart), PAYLOAD) for number in range(first, min(count, first + CLAIM))]
        await queue.submit(batch)
        await _claim_all(queue, len(batch))
        progress("using each kind once", min(1.0, (first + CLAIM) / count))


def _kind(number: int, apart: bool) -> Kind:
    own = f"{number:06}" if apart else ""
    return Kind(f"noop_{number % FUNCTIONS:03}", int(DEFAULT_PRIORITY), own, own)


async def _claim_all(queue: OpenQueue, count: int) -> None:
    """Claims so many, and settles them."""
    demand = Demand({Cell(f"noop_{number:03}", int(DEFAULT_PRIORITY)): CLAIM for number in range(FUNCTIONS)})
    demand.total = CLAIM
    left = count
    while left > 0:
        leased = await queue.lease(demand, LEASE, 0.0)
        if leased is None:
            raise TailraceError(f"{left} of {count} items that were put in are not due")
        left -= len(leased.ids)
        await queue.settle(leased.fence, leased.ids, [])


async def _turn(queue: OpenQueue, turns: ClaimCosts, cpu: Callable[[], float]) -> None:
    spent, began = cpu(), time.perf_counter()
    for batch in items(CLAIM * CLAIMS, FUNCTIONS):
        await queue.submit(batch)
    await _claim_all(queue, CLAIM * CLAIMS)
    turns.took.append(time.perf_counter() - began)
    turns.cpu.append(cpu() - spent)
    for batch in items(LONE, FUNCTIONS, size=1):
        began = time.perf_counter()
        await queue.submit(batch)
        await _claim_all(queue, 1)
        turns.lone.append(time.perf_counter() - began)
