"""Grace of leases that a sweep ends: how long a lease must be over before a sweep ends it.

A claim ends expired leases at once: a node that claims has renewed its own leases before. A sweep comes by itself. It
may be the first thing that a store does after it stood still, while holders are just about to renew and to settle. So a
sweep ends only leases that were over at the sweep before, and have been for a while.
"""

from __future__ import annotations

from typing import Final

#: µs. A holder that was cut off dials again within ten seconds.
GRACE: Final = 30_000_000
#: µs: longer than any lease can be over.
_NOTHING: Final = 1 << 62


class SweepGrace:
    """The grace of the sweeps of one store."""

    def __init__(self) -> None:
        self._last: int | None = None

    def micros(self, moment: int) -> int:
        """µs for which a lease must have been over to be ended by a sweep at this moment of the leases' clock. The
        first sweep ends none."""
        last, self._last = self._last, moment
        return _NOTHING if last is None else max(GRACE, moment - last)
