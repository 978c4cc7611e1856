"""Functions that block the event loop of their process, for less than it is ended for: other runs in it wait, and
nothing is lost by it."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from .plan import Deed, Plan

#: The share of worlds with such runs: not where runs would be told that their time is over. How many of them, at most.
BLOCKING, MOST = 0.12, 3
#: Seconds of a block: beyond every lease of a worker, and less than `loop_block_limit`.
SECONDS = (1.0, 28.0)


def blocking(plan: Plan) -> Plan:
    """The plan, perhaps with runs that block."""
    random = Random(f"blocks of {plan.seed}")
    if random.random() >= BLOCKING or plan.timeout or plan.threads:
        return plan
    chosen = {item.n for item in random.sample(plan.items, random.randint(1, MOST))}
    items = []
    for item in plan.items:
        if item.n in chosen:
            seconds = math.exp(random.uniform(*map(math.log, SECONDS)))
            item = replace(item, deeds=(Deed("ok", seconds, blocks=True), *item.deeds[1:]))
        items.append(item)
    return replace(plan, items=tuple(items))
