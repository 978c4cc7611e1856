"""Ordinary accidents below the stores: writes that land long after their writer is gone, a clock that is set while they
are down, files that are busy or full; and work that is taken back."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from .parts import QUEUE
from .plan import Deed, Fault, Item, Plan

#: The shares of worlds with each: zombies only where tailers are processes of their own.
ZOMBIES, CLOCKS, FILES = 0.3, 0.1, 0.15
#: The share of worlds in which items of the queue are cancelled, and of those items.
CANCELLING, CANCELLED = 0.2, 0.4
#: The share of worlds in which a worker hears late, and is then not heard any more; seconds by which it does; and those
#: for which what it runs meanwhile lasts: beyond its lease.
HEARS_LATE, BY, RUNS = 0.15, (3.0, 12.0), (25.0, 60.0)
#: Seconds for which it is not heard: beyond every lease.
UNHEARD = 40.0
#: Seconds after which a write lands whose writer was told that its connection broke: the least and the most.
LATE = (4.0, 25.0)
#: Seconds within which such writes are made.
LAST_WORDS = (0.2, 2.0)
#: Seconds that a file is busy or full: a writer waits for a lock for 5.
TROUBLED = (0.5, 20.0)
#: How far the clock is set ahead, seconds: beyond every lease; and back.
AHEAD, BACK = 3600.0, 15.0
#: Faults of a world that has any of a kind, at most.
MOST = 3


def rough(plan: Plan, strike: float, stores: str) -> Plan:
    """The plan, perhaps with accidents of the stores' host, which begin before `strike`."""
    random = Random(f"rough of {plan.seed}")
    faults = list(plan.faults)
    if plan.apart and random.random() < ZOMBIES:
        for _ in range(random.randint(1, MOST)):
            faults += _zombie(random, plan, strike, stores)
    restores = any(fault.kind == "restore" for fault in faults)
    if random.random() < CLOCKS:
        faults += _clock(random, strike, stores, back=not restores)
    if random.random() < FILES:
        for _ in range(random.randint(1, MOST)):
            file = random.choice(("queue", "log", "delay", "state"))
            seconds = _log_uniform(random, *TROUBLED)
            faults.append(
                Fault(random.uniform(1.0, strike), random.choice(("busy", "full")), stores, "", seconds, file)
            )
    items = plan.items
    if random.random() < CANCELLING:
        items = tuple(_cancelled(random, item) for item in items)
    if random.random() < HEARS_LATE:
        begin = random.uniform(3.0, strike)
        items = _long_from(random, items, begin)
        faults += _hears_late(random, plan, begin)
    return replace(plan, items=items, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _long_from(random: Random, items: tuple[Item, ...], begin: float) -> tuple[Item, ...]:
    """The items, of which the last two brought by `begin` run for long, whatever they are told."""
    late = sorted((item.at, item.n) for item in items if item.at < begin)[-2:]
    chosen = {n for _, n in late}
    return tuple(
        replace(item, deeds=(Deed("ok", random.uniform(*RUNS), stubborn=True), *item.deeds[1:]), cancel=0.0)
        if item.n in chosen
        else item
        for item in items
    )


def _hears_late(random: Random, plan: Plan, begin: float) -> list[Fault]:
    """Faults of a worker that hears late: messages of schedulers reach it late; after a heartbeat or so nothing that it
    says arrives, and then nothing reaches it. Leases that it counted from when it heard of them would last too long
    (L4)."""
    worker = f"worker{random.randint(1, plan.workers)}"
    late, mute = random.uniform(*BY), begin + random.uniform(0.2, 6.0)
    faults = []
    for number in range(plan.schedulers):
        name = f"scheduler{number + 1}"
        faults.append(Fault(begin, "cut", name, worker, late))
        faults.append(Fault(mute, "cut", worker, name, UNHEARD))
        faults.append(Fault(begin + late + 0.2, "cut", name, worker, UNHEARD))
    return faults


def _cancelled(random: Random, item: Item) -> Item:
    """The item, perhaps one that is taken back."""
    if item.source != QUEUE or random.random() >= CANCELLED:
        return item
    return replace(item, cancel=_log_uniform(random, 0.02, 30.0))


def _zombie(random: Random, plan: Plan, strike: float, stores: str) -> list[Fault]:
    """Faults that deliver the last words of a tailer late; often it dies then."""
    tailer = f"tailer{random.randint(1, plan.tailers)}"
    at, window = random.uniform(1.0, strike), random.uniform(*LAST_WORDS)
    faults = [Fault(at, "zombie", tailer, stores, random.uniform(*LATE), amount=window)]
    if random.random() < 0.7:
        kind = random.choice(("kill", "freeze"))
        faults.append(Fault(at + window, kind, tailer, seconds=_log_uniform(random, 0.3, 60.0)))
    return faults


def _clock(random: Random, strike: float, stores: str, *, back: bool) -> list[Fault]:
    """Faults of a clock that somebody sets between the stores' end and their start."""
    at, away = random.uniform(2.0, strike), _log_uniform(random, 0.2, 20.0)
    jump = _log_uniform(random, 1.0, AHEAD)
    if back and random.random() < 0.5:
        jump = -_log_uniform(random, 1.0, BACK)
    return [Fault(at, "kill", stores, seconds=away), Fault(at + away / 2, "jump", stores, amount=jump)]


def _log_uniform(random: Random, least: float, most: float) -> float:
    return math.exp(random.uniform(math.log(least), math.log(most)))
