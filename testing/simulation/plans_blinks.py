"""Breaks that heal, and nothing else that goes wrong: wires that are cut and hosts that stand still for less than
leases leave room for (L2, L3), while items run long. Nothing may run again for it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .plan import DETACH_AFTER, Deed, Fault, Item, Plan
from .unexplained_runs import HEALS, ROOM

#: The share of worlds with nothing but that: not where another scheduler may answer, since what runs stays at its own.
BLINKING = 0.12
#: Seconds of all breaks together, at most; of one that is followed by others, at most, and at least.
TOGETHER, ONE, LEAST = ROOM - 0.3, HEALS - 0.2, 0.3
#: The shares of worlds with one long break, and of breaks that end connections at once.
LONG_BREAK, ENDING = 0.5, 0.6
#: So many items run long, at most: more would take too long where one runs at a time. For how long they do, seconds.
LONG, RUNS = 6, (12.0, 35.0)
#: Times as long that a story may take: runs that faults would have cut short last to their end here.
LONGER = 1.5
#: Kinds of the other faults that stay: they restart nothing.
_HARMLESS = ("reset", "pause")


def blinking(plan: Plan, strike: float, stores: str) -> Plan:
    """The plan, perhaps with no other faults than breaks before `strike`."""
    random = Random(f"blinks of {plan.seed}")
    if random.random() >= BLINKING or plan.front:
        return plan
    faults = [fault for fault in plan.faults if fault.kind in _HARMLESS]
    rivals = plan.apart and plan.tailers > 1  # one takes over what its owner is not heard to have: a heartbeat's room
    long = random.random() < LONG_BREAK and not rivals
    left = ONE if rivals else TOGETHER
    while left > LEAST:
        seconds = left if long else min(left, random.uniform(LEAST, ONE))
        faults += _break(random, plan, random.uniform(3.0, strike), seconds, stores)
        left -= seconds
    lasting = plan.timeout or plan.detach_after < DETACH_AFTER  # there are such items, or must not be
    chosen = set() if lasting else {item.n for item in random.sample(plan.items, LONG)}
    items = tuple(_long(random, item) if item.n in chosen else item for item in plan.items)
    return replace(
        plan, items=items, patience=LONGER * plan.patience, faults=tuple(sorted(faults, key=lambda fault: fault.at))
    )


def _break(random: Random, plan: Plan, at: float, seconds: float, stores: str) -> list[Fault]:
    """A break: one host that stands still, or one wire that is cut in the chain from a store to a worker."""
    tailers = [f"tailer{number + 1}" for number in range(plan.tailers)] if plan.apart else [stores]
    schedulers = [f"scheduler{number + 1}" for number in range(plan.schedulers)]
    workers = [f"worker{number + 1}" for number in range(plan.workers)]
    tailer, scheduler, worker = (random.choice(hosts) for hosts in (tailers, schedulers, workers))
    wires = [(tailer, scheduler), (worker, scheduler)] + ([(tailer, stores)] if plan.apart else [])
    kind, (one, other) = random.choice(("cut", "both", "freeze")), random.choice(wires)
    if kind == "freeze":
        return [Fault(at, kind, random.choice((tailer, scheduler, worker)), seconds=seconds)]
    if random.random() < 0.5:
        one, other = other, one
    ends = [Fault(at + 0.05, "reset", one, other)] if random.random() < ENDING else []
    return [Fault(at, kind, one, other, seconds), *ends]


def _long(random: Random, item: Item) -> Item:
    """The item, which runs long when it runs first."""
    return replace(item, deeds=(Deed("ok", random.uniform(*RUNS)), *item.deeds[1:]), cancel=0.0)
