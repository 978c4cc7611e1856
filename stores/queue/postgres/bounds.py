"""The bound at which a look at a lane may begin, so that it does not pass again over what was taken since.

An index of PostgreSQL keeps what was taken until a vacuum; a queue that begins at the lane's head walks over all of it.
A bound is a hint of this process: another one may store or return something that is due before it, so all bounds are
forgotten once a second, with the poll that is the base of everything here.
"""

from __future__ import annotations

from collections.abc import Iterable


class LookBounds:
    """Lane → a time before which nothing of it was waiting when this process looked last."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}

    def of(self, lane: int) -> int:
        return self._of.get(lane, 0)

    def found(self, lane: int, earliest: int) -> None:
        """Nothing waits before this."""
        self._of[lane] = earliest

    def sooner(self, lanes: Iterable[tuple[int, int]]) -> None:
        """Something of the lane waits for this time."""
        for lane, moment in lanes:
            if moment < self._of.get(lane, 0):
                self._of[lane] = moment

    def forget(self) -> None:
        """Anything may wait anywhere."""
        self._of.clear()
