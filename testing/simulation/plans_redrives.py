"""Dead letters that an operator redrives, and faults at that moment."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .parts import QUEUE, STREAM
from .plan import Deed, Fault, Item, Plan, Redrive

#: The share of worlds with an operator, and its requests.
REDRIVEN = 0.12
REDRIVES = (1, 3)
#: The share of their items that die, of those that die again as often as is drawn, and how long each life takes.
DYING, AGAIN, LIFE = 0.3, 0.35, (0.01, 1.0)
#: True seconds between the first request and the last one.
BETWEEN = (8.0, 60.0)
#: The share of requests that are made twice at once, of those that something befalls, and of those that are given up
#: when they are not answered.
TWICE, STRUCK, ONCE = 0.3, 0.8, 0.3
#: Seconds that a step takes, about: mark, submit, move.
STEP = 0.04
#: Letters of one step.
STEPS = (1, 2, 100)


def redriven(plan: Plan, stores: str) -> Plan:
    """The plan, perhaps with dead letters that are redriven. Not where files are put back: a queue that forgot the new
    workloads of letters would have to be told again, and nobody could."""
    random = Random(f"redrives of {plan.seed}")
    if random.random() >= REDRIVEN or any(fault.kind == "restore" for fault in plan.faults):
        return plan
    gateways = max(1, plan.gateways)
    redrives: list[Redrive] = []
    faults = [*plan.faults]
    for _ in range(random.randint(*REDRIVES)):
        tailer = random.choice(("", "", QUEUE, STREAM))
        asked = Redrive(random.uniform(*BETWEEN), tailer, random.choice(STEPS), random.random() < ONCE)
        redrives.append(asked)
        if random.random() < TWICE:
            redrives.append(replace(asked, at=asked.at + random.uniform(0.0, 2 * STEP)))
        if random.random() < STRUCK:
            faults.append(_befalls(random, plan, asked.at, stores, gateways))
    return replace(
        plan,
        items=tuple(_dying(random, item) for item in plan.items),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        gateways=gateways,
        redrives=tuple(redrives),
    )


def _dying(random: Random, item: Item) -> Item:
    """The item, perhaps one whose runs end fatally, once or several times."""
    if random.random() >= DYING:
        return item
    times = 1
    while times < 4 and random.random() < AGAIN:
        times += 1
    deaths = [Deed("fatal", random.uniform(*LIFE)) for _ in range(times)]
    return replace(item, deeds=(*item.deeds[: random.choice((0, 0, 1))], *deaths))


def _befalls(random: Random, plan: Plan, at: float, stores: str, gateways: int) -> Fault:
    """A fault while a request is under way, or while the workloads that it brings run."""
    gateway = f"gateway{random.randint(1, gateways)}"
    seconds = random.choice((0.1, 1.0, 8.0)) * random.uniform(0.5, 2.0)
    match random.choice(("gateway", "gateway", "stores", "point", "answers", "cut", "runs", "runs")):
        case "gateway":
            return Fault(at + random.uniform(0.0, STEP), "kill", gateway, seconds=seconds)
        case "stores":
            return Fault(at + random.uniform(0.0, STEP), "kill", stores, seconds=seconds)
        case "point":
            what = f"{random.choice(('state', 'queue'))}: {random.choice(('before', 'after'))} commit"
            return Fault(at, "point", stores, what=what, number=random.randint(1, 4), seconds=seconds)
        case "answers":
            what = random.choice(("drop_reply", "repeat"))
            return Fault(at - 0.001, "weather", what=what, amount=0.5, seconds=3 * STEP)
        case "cut":
            return Fault(at + random.uniform(0.0, STEP), "both", gateway, stores, seconds)
    tailer = f"tailer{random.randint(1, plan.tailers)}" if plan.apart else stores
    victim = random.choice((tailer, f"scheduler{random.randint(1, plan.schedulers)}"))
    return Fault(at + random.uniform(0.0, 1.0), "kill", victim, seconds=seconds)
