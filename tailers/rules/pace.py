"""Pace of a replay: so many items a second, and even after a pause no more at once than those of a moment."""

from __future__ import annotations

#: Seconds whose items may come at once.
MOMENT = 0.1


class Pace:
    """A rate limit. `rate` items per second, 0: as many as anybody wants. Times are a monotonic clock's.

    Invariant: `_room` is between 0 and the items of a MOMENT, or one.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate * MOMENT)
        self._room = 0.0
        self._at = now

    def ready(self, now: float, limit: int) -> int:
        """Number of items that may be read now, `limit` at most."""
        if not self._rate:
            return limit
        self._room = min(self._most, self._room + max(0.0, now - self._at) * self._rate)
        self._at = max(self._at, now)
        return min(limit, int(self._room + 1e-9))

    def took(self, items: int) -> None:
        """Notes that so many items were read."""
        if self._rate:
            self._room = max(0.0, self._room - items)

    @property
    def wait(self) -> float:
        """Seconds until an item may be read."""
        return max(0.0, 1.0 - self._room) / self._rate if self._rate else 0.0
