"""Gateways that spool while their store is away, and faults as they do so and as they bring the workloads there."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .parts import QUEUE
from .plan import Fault, Item, Plan

#: The share of worlds whose gateways spool, and of those with one gateway alone, where order can be told.
SPOOLING, ALONE = 0.12, 0.7
#: The times for which the store is away: how often at most, and for how many seconds.
AWAY, SECONDS = 3, (0.5, 15.0)
#: The shares of items that come just as the store goes, and that have a key.
JUST_THEN, KEYED = 0.6, 0.6
#: Seconds in which a submission is spooled, about; the store's patience is before that when it is asked.
TAKES, PATIENCE = 0.008, 2.0
#: Moments around the commits of a spool.
POINTS = ("spool: before commit", "spool: after commit")


def spooling(plan: Plan, strike: float, stores: str) -> Plan:
    """The plan, perhaps with gateways that spool. Not where files are put back: a client that submitted since would
    have to be told that, and knows ids of the spool alone. Nothing is taken back, for the same reason."""
    random = Random(f"spool of {plan.seed}")
    if random.random() >= SPOOLING or any(fault.kind == "restore" for fault in plan.faults):
        return plan
    gateways = 1 if random.random() < ALONE else max(2, plan.gateways)
    items = [replace(item, cancel=0.0) for item in plan.items]
    faults = [fault for fault in plan.faults if fault.host != "gateway2" or gateways == 2]
    for _ in range(random.randint(1, AWAY)):
        at, seconds = random.uniform(2.0, strike - 5.0), random.uniform(*SECONDS)
        items = [_comes(random, item, at, seconds) for item in items]
        gateway = f"gateway{random.randint(1, gateways)}"
        faults += _away(random, stores, gateway, at, seconds)
        faults += _befalls(random, gateway, at, seconds)
        faults += _leaves(random, items, gateway, at, seconds)
    faults = [fault for fault in faults if fault.at > 0.1]
    return replace(
        plan,
        items=tuple(items),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        gateways=gateways,
        spools=True,
    )


def _comes(random: Random, item: Item, at: float, seconds: float) -> Item:
    """The item, perhaps one of a key, brought while the store is away or as it is back."""
    if item.source != QUEUE or random.random() >= JUST_THEN:
        return item
    key = f"key{random.randrange(2)}" if random.random() < KEYED else item.key
    return replace(item, at=random.uniform(at - 0.2, at + seconds + 3.0), key=key)


def _away(random: Random, stores: str, gateway: str, at: float, seconds: float) -> list[Fault]:
    """Faults by which the store does not answer its gateway."""
    match random.choice(("cut", "cut", "kill", "freeze", "busy")):
        case "cut":
            return [Fault(at, "both", gateway, stores, seconds)]
        case "busy":
            return [Fault(at, "busy", stores, what="queue", seconds=seconds)]
        case kind:
            return [Fault(at, kind, stores, seconds=seconds)]


def _befalls(random: Random, gateway: str, at: float, seconds: float) -> list[Fault]:
    """Faults by which the gateway dies while it spools, or while it drains; perhaps none."""
    away = random.choice((0.1, 1.0, 4.0)) * random.uniform(0.5, 2.0)
    match random.choice(("nothing", "spools", "drains", "point", "point")):
        case "spools":
            return [Fault(at + seconds * random.random(), "kill", gateway, seconds=away)]
        case "drains":
            return [Fault(at + seconds + random.uniform(0.0, 2.5), "kill", gateway, seconds=away)]
        case "point":
            what = random.choice(POINTS)
            return [Fault(at, "point", gateway, what=what, number=random.randint(1, 8), seconds=seconds + 3.0)]
    return []


def _leaves(random: Random, items: list[Item], gateway: str, at: float, seconds: float) -> list[Fault]:
    """Faults by which a submitting client leaves while an item is being spooled, and comes again."""
    came = [item.at for item in items if item.source == QUEUE and at < item.at < at + seconds]
    chosen = random.sample(came, min(len(came), random.randint(0, 3)))
    waits = [random.choice((0.0, PATIENCE)) + random.uniform(0.001, TAKES) for _ in chosen]
    return [Fault(time + wait, "reset", "client", gateway) for time, wait in zip(chosen, waits, strict=True)]
