"""Bounds at which a look at a lane may begin, so that it does not pass again over items that were taken since.

An index of PostgreSQL keeps entries of taken items until a vacuum, and a look that begins at the lane's head walks over
all of them. A bound is only a hint of this process: another process may store or return an item that is due before it.
So all bounds are forgotten once a second, with the regular poll.
"""

from __future__ import annotations

from collections.abc import Iterable


class LookBounds:
    """Lane → a time before which none of its items waited when this process last looked."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}

    def of(self, lane: int) -> int:
        return self._of.get(lane, 0)

    def found(self, lane: int, earliest: int) -> None:
        """Notes that no item of the lane waits before this time."""
        self._of[lane] = earliest

    def sooner(self, lanes: Iterable[tuple[int, int]]) -> None:
        """Notes times for which items of lanes wait."""
        for lane, moment in lanes:
            if moment < self._of.get(lane, 0):
                self._of[lane] = moment

    def forget(self) -> None:
        """Forgets all bounds: anything may wait anywhere."""
        self._of.clear()
