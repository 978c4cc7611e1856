"""Functions that wait for other work: some runs end when another item has ended, which may come long after them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .plan import Deed, Item, Plan

#: The share of worlds with such runs: not where items take turns in one line, or would be told that their time is over.
PARENTAL = 0.12
#: The share of their items that wait, and the seconds that they take before it.
WAITING, BEFORE = 0.4, (0.01, 2.0)


def parental(plan: Plan) -> Plan:
    """The plan, perhaps with runs that wait for other items: for items that do not wait, nor stand behind another
    one."""
    random = Random(f"parents of {plan.seed}")
    if random.random() >= PARENTAL or plan.order != "none" or plan.timeout:
        return plan
    parents = {item.n for item in plan.items if random.random() < WAITING}
    children = [
        each.n for each in plan.items if each.n not in parents and not (each.key or each.cancel or each.expires)
    ]
    if not children:
        return plan
    items = tuple(_waits(random, item, random.choice(children)) if item.n in parents else item for item in plan.items)
    return replace(plan, items=items)


def _waits(random: Random, item: Item, child: int) -> Item:
    """The item, which waits for `child` in its first run, and in the one after it."""
    deeds = [Deed("ok", random.uniform(*BEFORE), child=child), Deed("ok", random.uniform(*BEFORE), child=child)]
    first = item.deed(0)
    if first.kind in ("raise", "crash", "later"):  # what it would have failed by comes when it has waited
        deeds.insert(0, replace(first, child=child))
    return replace(item, deeds=tuple(deeds))
