"""References to items, grouped by the flights in which they are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ...model.workload import INDEX_BITS


def by_flight(refs: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
    """Yields the number of each flight and the indexes in it of its items, by C-speed steps over the batch."""
    ordered = sorted(set(refs))
    start = 0
    while start < len(ordered):
        number = ordered[start] >> INDEX_BITS
        stop = bisect_left(ordered, (number + 1) << INDEX_BITS, start)
        base = number << INDEX_BITS
        yield number, [ref - base for ref in ordered[start:stop]]
        start = stop
