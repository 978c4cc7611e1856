"""Ranges of positions that did not succeed → fewer ranges: old neighbours become one, across the smallest gaps."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.audit import Ending
from ..thinning import thinned


def join(one: Ending, later: Ending) -> Ending:
    """Two ranges and what lies between them, as one."""
    counts = dict(one.counts)
    for fate, count in later.counts.items():
        counts[fate] = counts.get(fate, 0) + count
    return Ending(one.first, later.last, counts)


def fewer(endings: Sequence[Ending], most: int) -> list[Ending]:
    """At most `most` (one or more) of the ranges, which rise. Counts stay as they were."""
    return thinned(endings, most, _gap, join)


def _gap(former: Ending, later: Ending) -> int:
    return later.first - former.last
