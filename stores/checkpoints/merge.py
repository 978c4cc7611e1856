"""Ranges of positions that did not succeed → fewer ranges: old neighbours become one, across the smallest gaps."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ...sdk.model.audit import Ending


def join(one: Ending, later: Ending) -> Ending:
    """Two ranges and what lies between them, as one."""
    return Ending(one.first, later.last, dict(Counter(one.counts) + Counter(later.counts)))


def thinned(endings: Sequence[Ending], most: int) -> list[Ending]:
    """At most `most` (one or more) of the ranges, which rise. Counts stay as they were."""
    gaps = [(later.first - former.last, place) for place, (former, later) in enumerate(pairwise(endings), 1)]
    joins = {place for _, place in heapq.nsmallest(max(0, len(endings) - most), gaps)}
    found: list[Ending] = []
    for place, ending in enumerate(endings):
        if place in joins:
            found[-1] = join(found[-1], ending)
        else:
            found.append(ending)
    return found
