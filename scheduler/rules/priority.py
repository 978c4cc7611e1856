"""Priority: strict within a function, with a guaranteed share for the lowest level that waits.

Strict order alone lets a steady flow of urgent work starve the rest for ever; a small share (5 % by default) of what
a function starts goes to its lowest waiting level, counted in items and carried over while others go first.
"""

from __future__ import annotations

from collections.abc import Sequence

#: What the lowest level may be owed at most, in items: a share is a pace, not a debt to be collected at once.
MOST_OWED = 16.0


def split(waiting: Sequence[int], count: int, owed: float, share: float) -> tuple[list[int], float]:
    """How many of each level (most urgent first) go when `count` may go, and what the lowest is owed afterwards.

    `count` is at most the sum of `waiting`. Invariants: the numbers add up to `count`; none is above what waits.
    """
    numbers = [0] * len(waiting)
    lowest = max((level for level, items in enumerate(waiting) if items), default=-1)
    if lowest < 0:
        return numbers, 0.0
    if sum(waiting) == waiting[lowest]:
        numbers[lowest] = count
        return numbers, 0.0
    owed = min(MOST_OWED, owed + count * share)
    low = min(int(owed), waiting[lowest], count)
    owed -= low
    left = count - low
    for level in range(lowest):
        numbers[level] = min(left, waiting[level])
        left -= numbers[level]
    numbers[lowest] = low + left
    return numbers, 0.0 if left else owed
