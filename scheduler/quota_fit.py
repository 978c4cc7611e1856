"""The fit of quotas to the workers and runs of now: reserves that nobody could keep, limits below the number of runs.

The limits are resolved by the rule of the schedulers (charges.py), for the runs that these report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.function_spec import FunctionSpec
from ..model.limits import Quota
from ..model.workload import Kind
from ..wire.v1 import scheduler_pb2 as pb
from .rules.charges import Charges
from .rules.limit import UNLIMITED, Limit

#: Limits that are named one by one; the rest are counted.
NAMED = 20


@dataclass(frozen=True, slots=True)
class Attached:
    """The workers that a scheduler has now: slots by the functions that they run, and how many of each kind run."""

    pools: Sequence[tuple[frozenset[str], int]] = ()
    running: Mapping[Kind, int] = field(default_factory=dict)

    @property
    def slots(self) -> int:
        """Number of all slots."""
        return sum(slots for _, slots in self.pools)

    def slots_of(self, function: str) -> int:
        """The number of slots that run a function."""
        return sum(slots for functions, slots in self.pools if function in functions)


def attached(reply: pb.InspectReply) -> Attached:
    """Reads the workers and runs of a scheduler from its own answer. Workers that leave or are cut off take nothing
    new, and places for items that must run alone are for the exception."""
    able = [worker for worker in reply.workers if worker.connected and not worker.draining]
    pools = [(frozenset(pool.functions), pool.slots) for worker in able for pool in worker.pools if not pool.alone]
    running = {Kind(each.function, each.priority, each.collection, each.tenant): each.items for each in reply.running}
    return Attached(pools, running)


def facts(now: Attached) -> dict[str, Any]:
    """The numbers of slots and runs, as plain data for JSON."""
    return {"slots": now.slots, "running": sum(now.running.values())}


def misfits(quotas: Collection[Quota], functions: Sequence[FunctionSpec], now: Attached) -> list[str]:
    """The quotas that do not fit the workers and runs of now, as sentences."""
    return [*_reserves(quotas, now), *_over(quotas, functions, now)]


def _reserves(quotas: Collection[Quota], now: Attached) -> list[str]:
    reserved = [quota for quota in quotas if quota.reserve]
    found: list[str] = []
    promised = sum(quota.reserve for quota in reserved) / 60.0
    if promised > now.slots:
        found.append(
            f"the reserves come to {promised:g} slots at every moment, and the workers that are attached now have "
            f"{now.slots}: start more workers, or lower a reserve; until then no reserve is sure to be met in full"
        )
    by_function: dict[str, float] = {}
    for quota in reserved:
        if quota.function:
            by_function[quota.function] = by_function.get(quota.function, 0.0) + quota.reserve / 60.0
    for function, slots in sorted(by_function.items()):
        there = now.slots_of(function)
        if slots > there and (there < now.slots or promised <= now.slots):
            found.append(
                f"function {function}: its reserves come to {slots:g} slots, and {there} of the slots that are "
                "attached now run it"
            )
    return found


def _over(quotas: Collection[Quota], functions: Sequence[FunctionSpec], now: Attached) -> list[str]:
    charges = Charges()
    charges.set(quotas, 1, 0.0)
    charges.declare({spec.name: spec.downstreams for spec in functions})
    running: dict[Limit, int] = {}
    for kind, items in now.running.items():
        for limit in charges.resolve(kind, 0.0):
            running[limit] = running.get(limit, 0) + items
    over = {limit: items for limit, items in running.items() if limit.concurrency < min(items, UNLIMITED)}
    worst = sorted(over, key=lambda limit: (limit.concurrency - over[limit], limit.name))
    found = [
        f"{limit.name}: {over[limit]} run now or are about to, and its concurrency would be {limit.concurrency}: "
        f"nothing is ended for that, and nothing new of it starts until {over[limit] - limit.concurrency + 1} have "
        "ended"
        for limit in worst[:NAMED]
    ]
    if len(worst) > NAMED:
        found.append(f"{len(worst) - NAMED} more limits would be below the items that run now")
    return found
