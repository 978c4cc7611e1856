"""The scenario `trees`: the cost of a claim and of a settlement of items of job trees, with 1,000 and with very many
items in one tree, and with one tree open and with 10,000.

Four queues of one server (or four files) take turns, so that all meet the same minutes of the machine. Of two, the one
holds FEW items of one tree and the other `count`; of the other two, the one holds items of one tree and the other as
many of OPEN trees. They are claimed 256 at a time, and as many are added to the same trees again, none of which is
sealed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count as numbers_from
from pathlib import Path

from ..assembly.embedded import EmbeddedStores
from ..model.claim import Leased
from ..model.demand import Cell, Demand
from ..model.errors import TailraceError
from ..model.job import JobItem, JobSpec, TreeSpec
from ..model.priority import Priority
from ..model.workload import Kind
from ..stores.jobs.jobs import Feeding
from ..stores.queue.sqlite.claim import BESIDE_MICROS
from .backlog import CLAIM, LEASE, Costs, place_of, stores_in
from .figures import Figures, Progress
from .percentiles import median

#: Items of the small tree; open trees beside each other, and items of each.
FEW, OPEN, EACH = 1000, 10_000, 4
#: Claims of one queue in a row, for which the small tree must have items; rounds in which the queues take turns.
CLAIMS, ROUNDS = 3, 40
#: Items of one addition while a tree is filled, and calls at once where there are many trees.
BATCH, AT_ONCE = 1000, 64
#: Seconds after an addition until claims are full again: for a moment a submission makes them smaller.
PAUSE = 2e-6 * BESIDE_MICROS
#: Number of parts of the open trees; the times that making the first and the last part took are compared.
PARTS = 10

KIND = Kind("bench_first", int(Priority.EVENTUAL))
CELLS = {Cell(KIND.function, KIND.priority): CLAIM}


@dataclass(slots=True)
class TreeCosts:
    """Costs of one queue: of its claims and its settlements."""

    claims: Costs = field(default_factory=Costs)
    settlements: Costs = field(default_factory=Costs)


async def trees(folder: Path, count: int, progress: Progress, engine: str = "sqlite") -> Figures:
    """`items_ratio`: of the median waits for a claim of 256 items in a tree of `count`, to those in one of FEW;
    `open_ratio`: of those beside OPEN open trees, to those beside one; each also by CPU, server and client, and for
    settlements; `making_ratio`: of the times that the last and the first tenth of OPEN trees took to make and fill.
    Raises TailraceError when a claim does not get what it may."""
    sizes = {"few": (1, FEW), "many": (1, count), "one": (1, OPEN * EACH), "open": (OPEN, EACH)}
    costs = {name: TreeCosts() for name in sizes}
    with place_of(folder, engine) as place:
        async with contextlib.AsyncExitStack() as stack:
            forests: dict[str, _Forest] = {}
            for name, (many, each) in sizes.items():
                stores = await stack.enter_async_context(stores_in(folder / name, place, name))
                forests[name] = _Forest(stores, place.cpu)
                making = await forests[name].plant(many, each, progress)
            for number in range(-1, ROUNDS):
                progress("claiming in turns", max(0, number) / ROUNDS)
                for name, forest in forests.items():
                    # The first turn warms up, and is not counted.
                    await forest.turn(costs[name] if number >= 0 else TreeCosts())
    return {"items": float(count), **compared(costs), "making_ratio": round(making, 3)}


def compared(costs: dict[str, TreeCosts]) -> Figures:
    """The figures of the four queues."""
    figures: Figures = {}
    for name, each in costs.items():
        figures[f"{name}_claim_us"] = round(1e6 * median(each.claims.took), 1)
        figures[f"{name}_settle_us"] = round(1e6 * median(each.settlements.took), 1)
    for what, before, after in (("items", "few", "many"), ("open", "one", "open")):
        small, large = costs[before], costs[after]
        for called, one, other in (
            ("", small.claims, large.claims),
            ("settle_", small.settlements, large.settlements),
        ):
            figures[f"{what}_{called}ratio"] = round(median(other.took) / median(one.took), 3)
            figures[f"{what}_{called}cpu_ratio"] = round(sum(other.cpu) / sum(one.cpu), 3)
    return figures


class _Forest:
    """The trees of one queue. An item's payload is the number of its tree."""

    def __init__(self, stores: EmbeddedStores, cpu: Callable[[], float]) -> None:
        self._queue, self._jobs, self._cpu = stores.queue, stores.jobs, cpu
        self._tokens = numbers_from()

    async def plant(self, many: int, each: int, progress: Progress) -> float:
        """Makes so many trees of so many items each. Returns the time of the last part as a multiple of the first
        one's."""
        took: list[float] = []
        for part in range(PARTS):
            progress(f"making {many} tree(s) of {each} items", part / PARTS)
            began = time.perf_counter()
            left = iter(range(many * part // PARTS, many * (part + 1) // PARTS))
            await asyncio.gather(*(self._make_some(left, each) for _ in range(AT_ONCE)))
            took.append(time.perf_counter() - began)
        return took[-1] / took[0]

    async def _make_some(self, left: Iterator[int], each: int) -> None:
        for number in left:
            await self._make(number, each)

    async def _make(self, number: int, each: int) -> None:
        tree = TreeSpec(_id(number), "bench", [JobSpec(KIND.function, KIND.function, priority=KIND.priority)])
        await self._jobs.create(tree, [Feeding(KIND)])
        for first in range(0, each, BATCH):
            await self._add(number, min(BATCH, each - first))

    async def _add(self, number: int, count: int) -> None:
        items = [JobItem(b"%d" % number)] * count
        await self._jobs.add(_id(number), "", f"call-{next(self._tokens)}", items)

    async def turn(self, costs: TreeCosts) -> None:
        """Times some claims, and the settlement of the claimed items; then adds as many to the same trees."""
        await asyncio.sleep(PAUSE)
        taken: list[Leased] = []
        for _ in range(CLAIMS):
            spent, began = self._cpu(), time.perf_counter()
            leased = await self._queue.lease(Demand(CELLS, frozenset(), CLAIM), LEASE, 0.0)
            costs.claims.took.append(time.perf_counter() - began)
            costs.claims.cpu.append(self._cpu() - spent)
            if leased is None or len(leased.ids) < CLAIM:
                raise TailraceError(f"a claim of {CLAIM} items got {0 if leased is None else len(leased.ids)}")
            taken.append(leased)
        for leased in taken:
            spent, began = self._cpu(), time.perf_counter()
            refused = await self._queue.settle(leased.fence, leased.ids, [])
            costs.settlements.took.append(time.perf_counter() - began)
            costs.settlements.cpu.append(self._cpu() - spent)
            if refused:
                raise TailraceError(f"{len(refused)} items that were claimed could not be settled")
        again = Counter(int(payload) for leased in taken for payload in leased.payloads)
        await asyncio.gather(*(self._add(number, count) for number, count in again.items()))


def _id(number: int) -> str:
    return f"bench-{number:05}"
