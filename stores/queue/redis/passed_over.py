"""Items at the head of a lane that a claim need not look at again, since their kinds were shut when it did."""

from __future__ import annotations

import math


class PassedOver:
    """Of each lane, by the kinds that are shut. Forgotten now and then, so that what came before them is found."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, frozenset[int]], int] = {}
        self._forgot = -math.inf  # monotonic

    def __call__(self, lane: int, shut: frozenset[int]) -> int:
        """How many of the lane's first were passed by."""
        return self._counts.get((lane, shut), 0) if shut else 0

    def told(self, lane: int, shut: frozenset[int], count: int) -> None:
        """A claim says so; below zero: -1 less as many, and it is not through."""
        if shut:
            self._counts[lane, shut] = count if count >= 0 else -1 - count

    def forget(self, now: float, every: float) -> None:
        """All of it, when it is so many seconds old."""
        if abs(now - self._forgot) >= every:
            self._counts.clear()
            self._forgot = now
