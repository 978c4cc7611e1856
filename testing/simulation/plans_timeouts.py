"""Functions that have a time-out, and items that take longer: some end when they are told to, some do not care."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from .plan import Item, Plan
from .plans_rough import UNHEARD

#: The share of worlds whose function has a time-out, and of those items that take longer at first.
TIMED_OUT, TOO_LONG = 0.15, 0.4
#: The time-out: the least and the most, seconds; and how many of it such an item takes.
SECONDS, TIMES = (0.3, 6.0), (1.2, 8.0)
#: The share of such items that do not end when they are told to.
STUBBORN = 0.4


def timed_out(plan: Plan) -> Plan:
    """The plan, perhaps with a time-out of its function: not where its items fail or last for another reason."""
    random = Random(f"time-outs of {plan.seed}")
    other = any(fault.kind == "outage" or fault.seconds == UNHEARD for fault in plan.faults)
    if random.random() >= TIMED_OUT or other:
        return plan
    timeout = _log_uniform(random, *SECONDS)
    return replace(plan, timeout=timeout, items=tuple(_too_long(random, item, timeout) for item in plan.items))


def _too_long(random: Random, item: Item, timeout: float) -> Item:
    """The item, perhaps one that takes too long when it runs first."""
    if random.random() >= TOO_LONG:
        return item
    seconds = timeout * _log_uniform(random, *TIMES)
    first = replace(item.deed(0), seconds=seconds, stubborn=random.random() < STUBBORN)
    return replace(item, deeds=(first, *item.deeds[1:]))


def _log_uniform(random: Random, least: float, most: float) -> float:
    return math.exp(random.uniform(math.log(least), math.log(most)))
