"""The scenario `claims`: the cost of a claim where many tenants have items waiting, against one tenant; and the wait of
one tenant's item behind very many of another's.

Four queues of one server (or four files) take turns, so that all meet the same minutes of the machine. Of two, the one
holds items of one tenant and the other as many of TENANTS; they are claimed 256 at a time, and as many are put in
again. Of the other two, one is empty and one holds `count` items of one tenant; another tenant's item is put in and
claimed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from ..model.claim import Leased
from ..model.demand import Cell, Demand
from ..model.errors import TailraceError
from ..model.priority import DEFAULT_PRIORITY
from ..model.workload import Kind
from ..stores.queue.engines import OpenQueue
from ..stores.queue.queue import NewItem
from .backlog import CLAIM, LEASE, Costs, opened_in, place_of
from .figures import Figures, Progress
from .percentiles import median
from .workload import PAYLOAD

#: Tenants beside each other, and items of each.
TENANTS, EACH = 1000, 40
#: Claims, and lone items, of one queue in a row; how often the queues take turns.
CLAIMS, LONE, ROUNDS = 8, 8, 40
#: Items of one submission while a queue is filled.
BATCH = 1000

KIND = Kind("noop", int(DEFAULT_PRIORITY))
CELLS = {Cell(KIND.function, KIND.priority): CLAIM}


async def claims(folder: Path, count: int, progress: Progress, engine: str = "sqlite") -> Figures:
    """`ratio`: of the median waits for a claim of 256 items of TENANTS tenants, to one of one tenant; `cpu_ratio`: of
    the means of their CPU, server and client. `next_ratio`: of the median waits for one tenant's item behind `count` of
    another's, to those in an empty queue; `next_claims`: the most claims it took. Raises TailraceError when a claim
    does not get what it may."""
    names = ("one", "many", "empty", "behind")
    costs = {name: Costs() for name in names}
    most = 0
    with place_of(folder, engine) as place:
        async with contextlib.AsyncExitStack() as stack:
            queues = {name: await stack.enter_async_context(opened_in(folder / name, place, name)) for name in names}
            await _fill(queues["one"], TENANTS * EACH, 1, progress)
            await _fill(queues["many"], TENANTS * EACH, TENANTS, progress)
            await _fill(queues["behind"], count, 1, progress)
            for number in range(-1, ROUNDS):
                progress("claiming in turns", max(0, number) / ROUNDS)
                # The first turn warms up, and is not counted.
                turn = costs if number >= 0 else {name: Costs() for name in names}
                for name in ("one", "many"):
                    await _full(queues[name], turn[name], place.cpu)
                for name in ("empty", "behind"):
                    most = max(most, await _next(queues[name], turn[name], place.cpu))
    return {"items": float(count), **compared(costs), "next_claims": float(most)}


def compared(costs: dict[str, Costs]) -> Figures:
    """The figures of the four queues."""
    waits = {name: 1e6 * median(each.took) for name, each in costs.items()}
    cpu = {name: 1e6 * sum(each.cpu) / len(each.cpu) for name, each in costs.items()}
    return {
        "one_us": round(waits["one"], 1),
        "many_us": round(waits["many"], 1),
        "ratio": round(waits["many"] / waits["one"], 3),
        "cpu_ratio": round(cpu["many"] / cpu["one"], 3),
        "empty_next_us": round(waits["empty"], 1),
        "next_us": round(waits["behind"], 1),
        "next_ratio": round(waits["behind"] / waits["empty"], 3),
        "next_cpu_ratio": round(cpu["behind"] / cpu["empty"], 3),
    }


async def _fill(queue: OpenQueue, count: int, tenants: int, progress: Progress) -> None:
    kinds = cycle([KIND._replace(tenant=f"t{number:04}") for number in range(tenants)])
    for first in range(0, count, BATCH):
        await queue.submit([NewItem(kind, PAYLOAD) for kind in islice(kinds, min(BATCH, count - first))])
        progress(f"filling a queue of {tenants} tenant(s)", first / count)


async def _full(queue: OpenQueue, costs: Costs, cpu: Callable[[], float]) -> None:
    """Makes claims, each of which is full; settles the claimed items, and puts in as many of the same tenants."""
    for _ in range(CLAIMS):
        spent, began = cpu(), time.perf_counter()
        leased = await queue.lease(Demand(CELLS, frozenset(), CLAIM), LEASE, 0.0)
        costs.took.append(time.perf_counter() - began)
        costs.cpu.append(cpu() - spent)
        if leased is None or len(leased.ids) < CLAIM // 4:
            raise TailraceError(f"a claim had {len(leased.ids) if leased else 0} items of {CLAIM} that are due")
        await queue.settle(leased.fence, leased.ids, [])
        await queue.submit([NewItem(kind, PAYLOAD) for kind in leased.kinds])


async def _next(queue: OpenQueue, costs: Costs, cpu: Callable[[], float]) -> int:
    """Puts in another tenant's items, one after the other, and claims each beside one of those before it. Returns the
    most claims that one took."""
    other, most = KIND._replace(tenant="other"), 0
    for _ in range(LONE):
        await queue.submit([NewItem(other, PAYLOAD)])
        found: list[Leased] = []
        spent, began = cpu(), time.perf_counter()
        while other not in [kind for leased in found for kind in leased.kinds]:
            leased = await queue.lease(Demand(CELLS, frozenset(), 2), LEASE, 0.0)
            if leased is None:
                raise TailraceError("an item that was put in is not due")
            found.append(leased)
        costs.took.append(time.perf_counter() - began)
        costs.cpu.append(cpu() - spent)
        most = max(most, len(found))
        for leased in found:
            await queue.settle(leased.fence, leased.ids, [])
    return most
