"""Worlds with quotas: how many runs of the function there may be at once, and how that changes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .plan import LimitApplied, Plan

#: The share of worlds with quotas; how often they change, at most; the least and the most that they allow.
LIMITED, CHANGES, CONCURRENCY = 0.25, 3, (1, 5)


def limited(plan: Plan, strike: float) -> Plan:
    """The plan, perhaps with quotas that change by the time `strike`. Not where several schedulers have their own,
    where runs wait for others, nor where items wait for one another in order, which would take too long for a story."""
    random = Random(f"limits of {plan.seed}")
    waits = any(deed.child is not None for item in plan.items for deed in item.deeds)
    if random.random() >= LIMITED or plan.schedulers > 1 or plan.order != "none" or waits:
        return plan
    times = [0.0, *sorted(random.uniform(2.0, strike) for _ in range(random.randrange(CHANGES)))]
    limits = tuple([LimitApplied(at, random.randint(*CONCURRENCY)) for at in times])
    return replace(plan, limits=limits, patience=3 * plan.patience)
