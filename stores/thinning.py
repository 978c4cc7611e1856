"""Rising ranges → fewer ranges: neighbours are merged across the smallest gaps, so that little detail is lost."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def thinned(ranges: Sequence[T], most: int, gap: Callable[[T, T], int | None], join: Callable[[T, T], T]) -> list[T]:
    """Merges ranges until there are at most `most`, or until the rest may not be merged.

    `gap(former, later)` is the distance between two neighbours, None when they must stay apart; `join` merges them.
    """
    distances = ((gap(former, later), place) for place, (former, later) in enumerate(pairwise(ranges), 1))
    gaps = [(distance, place) for distance, place in distances if distance is not None]
    joins = {place for _, place in heapq.nsmallest(max(0, len(ranges) - most), gaps)}
    found: list[T] = []
    for place, one in enumerate(ranges):
        if place in joins:
            found[-1] = join(found[-1], one)
        else:
            found.append(one)
    return found
