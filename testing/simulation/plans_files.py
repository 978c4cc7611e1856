"""Accidents of the stores' files: a writer that ends by itself, whose files are opened again by the same process, and a
power cut in the middle of a commit."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from .plan import Fault, Plan

#: The shares of worlds with each.
WRITERS, POWER = 0.12, 0.1
#: Faults of a kind, at most.
MOST = 3
#: Seconds within which a writer that is to end has something to write; and for which a machine is down.
WITHIN, AWAY = 20.0, (1.0, 60.0)


def with_files(plan: Plan, strike: float, stores: str) -> Plan:
    """The plan, perhaps with accidents of the stores' files, which begin before `strike`. Files that are put back from
    a copy are in memory: they are not torn."""
    random = Random(f"files of {plan.seed}")
    faults = list(plan.faults)
    if random.random() < WRITERS:
        for _ in range(random.randint(1, MOST)):
            file = random.choice(("queue", "log", "delay", "state"))
            at, number = random.uniform(1.0, strike), random.randint(0, 1)
            faults.append(Fault(at, "writer", stores, seconds=WITHIN, what=file, number=number))
    if random.random() < POWER and not any(fault.kind == "restore" for fault in faults):
        for _ in range(random.randint(1, 2)):
            away = math.exp(random.uniform(math.log(AWAY[0]), math.log(AWAY[1])))
            faults.append(Fault(random.uniform(1.0, strike), "power", stores, seconds=away))
    return replace(plan, faults=tuple(sorted(faults, key=lambda fault: fault.at)))
