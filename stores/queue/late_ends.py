"""Leases that a sweep ends, which nobody asked for: how long after their time.

A claim ends what is over at once, and whoever claims renews before that what it has. A sweep comes by itself: also as
the first thing that a store does which stood still, while those who have something are about to renew and to settle. So
it ends only what was over when it came last, and for a while.
"""

from __future__ import annotations

from typing import Final

#: µs. Whoever was cut off dials again within ten seconds.
LATE: Final = 30_000_000
#: Longer than any lease is over.
_NOTHING: Final = 1 << 62


class LateEnds:
    """Of the sweeps of one store."""

    def __init__(self) -> None:
        self._last: int | None = None

    def behind(self, moment: int) -> int:
        """µs that a lease must be over for, in a sweep at this moment by the clock of the leases; no lease is so in the
        first one."""
        last, self._last = self._last, moment
        return _NOTHING if last is None else max(LATE, moment - last)
