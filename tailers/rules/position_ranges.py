"""Rising positions as ranges: long runs are settled range by range, not one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def ranges(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rising positions as ranges, both ends included. The end of each run is found by halving, so that a flight of
    which a few items failed takes about as many steps as a whole one."""
    start, count = 0, len(positions)
    while start < count:
        shift = positions[start] - start  # the same for all of a run, and more for what follows
        last, beyond = (count - 1, count) if positions[-1] - shift == count - 1 else (start, count - 1)
        while beyond - last > 1:
            middle = (last + beyond) >> 1
            if positions[middle] - shift == middle:
                last = middle
            else:
                beyond = middle
        yield positions[start], positions[last]
        start = last + 1
