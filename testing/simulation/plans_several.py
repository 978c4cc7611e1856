"""Several processes of a kind behind one address, with their faults: schedulers that a tailer finds by chance, gateways
and delay services that a repeated call may find another of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from .plan import Fault, Plan

#: The shares of worlds whose schedulers stand behind one address, and to which submissions come through gateways; of
#: those with a delay service apart that have two.
FRONT, GATEWAYS, DELAYS = 0.2, 0.2, 0.3
#: Faults more among several of a kind, at most.
MORE = 4
#: Seconds between the ends of one scheduler and the next in a rolling restart.
ROLLING = (2.0, 20.0)
#: True seconds after a change of schedulers within which their tailer dies: what it granted may still be running.
SOON = 25.0


def several(plan: Plan, strike: float, rate: Callable[[Random], float]) -> Plan:
    """The plan with several processes of a kind, as its seed has it. Faults begin before `strike`; `rate` draws clock
    rates."""
    random = Random(f"several of {plan.seed}")
    if random.random() < FRONT:
        plan = _front(plan, random, strike)
    if random.random() < GATEWAYS:
        plan = _gateways(plan, random, strike)
    if plan.apart and random.random() < DELAYS:
        plan = replace(plan, delays=2, faults=(*plan.faults, _away(random, "delay2", strike)))
    more = [f"scheduler{number}" for number in (2, 3)] + ["gateway1", "gateway2", "delay2"]
    rates = {name: rate(random) for name in more if name not in plan.rates}
    return replace(plan, rates=plan.rates | rates)


def _front(plan: Plan, random: Random, strike: float) -> Plan:
    """The plan with schedulers that are exchanged under their tailers, and tailers that die while two are named in
    their rows."""
    count = random.choice((2, 2, 3))
    names = [f"scheduler{number + 1}" for number in range(count)]
    tailers = [f"tailer{number + 1}" for number in range(plan.tailers)] if plan.apart else ["node"]
    workers = [f"worker{number + 1}" for number in range(plan.workers)]

    def moved(name: str) -> str:
        return random.choice(names) if name.startswith("scheduler") else name

    faults = [replace(fault, host=moved(fault.host), other=moved(fault.other)) for fault in plan.faults]
    if random.random() < 0.4:
        gap = random.uniform(*ROLLING)
        begin = random.uniform(1.0, max(2.0, strike - gap * (count - 1)))
        faults += [Fault(begin + gap * index, "drain", name, seconds=15.0) for index, name in enumerate(names)]
    for _ in range(random.randint(1, MORE)):
        at, seconds = random.uniform(1.0, strike), random.uniform(0.5, 40.0)
        tailer, name = random.choice(tailers), random.choice(names)
        match random.choice(("reset", "cut", "back", "worker", "steer", "heir")):
            case "reset":
                faults.append(Fault(at, "reset", tailer, name))
            case "cut":
                faults.append(Fault(at, "cut", tailer, name, seconds))
            case "back":
                faults.append(Fault(at, "cut", name, tailer, seconds))
            case "worker":
                faults.append(Fault(at, random.choice(("cut", "both")), random.choice(workers), name, seconds))
            case "steer":
                faults.append(Fault(at, "steer", name))
                faults += [Fault(at + random.uniform(0.1, 3.0), "reset", tailer, other) for other in names]
            case _:
                faults += [Fault(at, "reset", tailer, other) for other in names]
                faults.append(Fault(at + random.uniform(0.0, SOON), "kill", tailer, seconds=random.uniform(0.1, 10.0)))
    return replace(plan, front=True, schedulers=count, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _gateways(plan: Plan, random: Random, strike: float) -> Plan:
    """The plan with submissions whose answers are lost, by the network or with their gateway."""
    count = random.choice((1, 2, 2))
    faults = list(plan.faults)
    for _ in range(random.randint(1, 3)):
        at = random.uniform(1.0, strike)
        if random.random() < 0.5:
            faults.append(_away(random, f"gateway{random.randint(1, count)}", strike))
        else:
            what = random.choice(("drop_reply", "repeat"))
            faults.append(Fault(at, "weather", what=what, amount=0.5, seconds=random.uniform(1.0, 10.0)))
    return replace(plan, gateways=count, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _away(random: Random, name: str, strike: float) -> Fault:
    kind = random.choice(("kill", "freeze", "drain"))
    seconds = 15.0 if kind == "drain" else random.uniform(0.1, 30.0)
    return Fault(random.uniform(1.0, strike), kind, name, seconds=seconds)
