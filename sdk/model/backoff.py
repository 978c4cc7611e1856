"""Back-off (exponential): the wait before something that failed is tried again, a first pause, doubled after each
further failure up to a cap, with chance in it (spread.py)."""

from __future__ import annotations

from collections.abc import Callable

from .spread import spread

#: Doublings after which any cap is reached; more would not fit into a float.
_MOST = 60


def doubled(first: float, last: float, times: int) -> float:
    """The pause `first` after `times` doublings (none or more), `last` at most."""
    return min(last, first * 2.0 ** min(times, _MOST))


class Backoff:
    """The pauses of one thing that may fail, seconds. `chance` returns a number in [0, 1) and spreads each pause around
    its length; without it there is none.

    Invariant: `_next` is the pause after the next failure, before it is spread.
    """

    __slots__ = ("_chance", "_first", "_last", "_next")

    def __init__(self, first: float, last: float, chance: Callable[[], float] | None = None) -> None:
        self._first = self._next = first
        self._last = last
        self._chance = chance

    def pause(self) -> float:
        """It failed once more: how long to wait now."""
        pause, self._next = self._next, doubled(self._next, self._last, 1)
        return spread(pause, self._chance)

    def reset(self) -> None:
        """It is well: the next failure is answered with the first pause."""
        self._next = self._first
