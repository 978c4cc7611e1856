"""Ranks: which priority of a function goes next. Strict, with one guaranteed part for all lower ranks together (FL7).

Strict order alone lets a steady flow of urgent work starve the rest for ever. So a small part of the starts of a
function (5 % by default) belongs to the ranks below its highest waiting one, the higher first, and of that part a
quarter to each further one, so that a middle rank cannot starve the lowest.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Most items that a rank may be owed: a part is a pace, not a debt to be collected at once.
MOST_OWED = 16.0
#: Share of the guaranteed part for each lower rank but the first of them.
LEAST_PART = 0.25


class Ranks:
    """The debts to the lower ranks of one function. Invariant: 0 ≤ owed ≤ MOST_OWED; the highest waiting rank is owed
    nothing."""

    __slots__ = ("owed",)

    def __init__(self, levels: int) -> None:
        self.owed = [0.0] * levels

    def next(self, waiting: Sequence[int]) -> tuple[int, int]:
        """The rank whose turn it is among those `waiting` (most urgent first), and how many items it may have: 0 says
        that there is no bound. `waiting` is not empty."""
        first, *lower = waiting
        owed = self.owed
        owed[first] = 0.0
        for rank in lower:
            if owed[rank] >= 1.0:
                return rank, int(owed[rank])
        return first, 0

    def started(self, rank: int, count: int, waiting: Sequence[int], share: float) -> None:
        """Counts `count` items of a rank that started while these waited: the debt to the lower ones grows with the
        starts of a higher one."""
        owed = self.owed
        if owed[rank] >= 1.0:
            owed[rank] = max(0.0, owed[rank] - count)
        lower = waiting[1:]
        for rank_below, part in zip(lower, parts(len(lower)), strict=True):
            owed[rank_below] = min(MOST_OWED, owed[rank_below] + count * share * part)


def parts(lower: int) -> list[float]:
    """The shares of the guaranteed part among so many lower ranks, the highest of them first."""
    if lower <= 1:
        return [1.0] * lower
    rest = LEAST_PART if lower == 2 else LEAST_PART * 2 / lower
    return [1.0 - rest * (lower - 1)] + [rest] * (lower - 1)
