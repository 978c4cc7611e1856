"""Ranges of positions that did not succeed → fewer ranges: old neighbours are merged, across the smallest gaps."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.audit import Ending
from ..thinning import thinned


def join(one: Ending, later: Ending) -> Ending:
    """Merges two ranges, with the positions between them, into one; its counts are the sums of theirs."""
    counts = dict(one.counts)
    for fate, count in later.counts.items():
        counts[fate] = counts.get(fate, 0) + count
    return Ending(one.first, later.last, counts)


def fewer(endings: Sequence[Ending], most: int) -> list[Ending]:
    """Merges rising ranges until there are at most `most` (one or more). Their counts add up to the same as before."""
    return thinned(endings, most, _gap, join)


def _gap(former: Ending, later: Ending) -> int:
    return later.first - former.last
