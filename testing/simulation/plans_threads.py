"""Functions that are declared `def`: they run in threads, cannot be cancelled, and look whether they should end."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .plan import Plan

#: The share of worlds whose function is such a one, and of those in which it has a time-out.
THREADED, TIMED = 0.12, 0.25


def threaded(plan: Plan) -> Plan:
    """The plan, perhaps with a `def` function."""
    if plan.timeout:
        return replace(plan, threads=Random(f"time-outs in threads of {plan.seed}").random() < TIMED)
    random = Random(f"threads of {plan.seed}")
    return replace(plan, threads=True) if random.random() < THREADED else plan
