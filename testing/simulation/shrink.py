"""A failing plan with as little in it as still fails: fewer faults first, then fewer items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from .plan import Plan

T = TypeVar("T")

#: Stories told at most while shrinking.
TRIES = 150


def shrunk(plan: Plan, fails: Callable[[Plan], bool], tries: int = TRIES) -> Plan:
    """`plan` with faults and items left out, for as long as `fails` says that it still does."""
    left = [tries]

    def still(candidate: Plan) -> bool:
        left[0] -= 1
        return left[0] >= 0 and fails(candidate)

    plan = replace(plan, faults=tuple(fewer(plan.faults, lambda some: still(replace(plan, faults=tuple(some))))))
    return replace(plan, items=tuple(fewer(plan.items, lambda some: still(replace(plan, items=tuple(some))))))


def fewer(all_: Sequence[T], still: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Leaves out halves, then quarters, … then single ones, as long as the rest still fails."""
    size = max(1, len(all_) // 2)
    while all_:
        start, found = 0, False
        while start < len(all_):
            candidate = [*all_[:start], *all_[start + size :]]
            if still(candidate):
                all_, found = candidate, True
            else:
                start += size
        if size == 1 and not found:
            break
        size = max(1, size // 2)
    return all_
