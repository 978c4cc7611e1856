"""Is there room for more: what lives is counted once a second, so several nodes may pass the bound by what they take
within one."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from ....sdk.clock import Clock
from ....sdk.model.errors import Overloaded
from ..lifecycle import LEASED, WAITING

#: Seconds for which a count is good.
COUNTED = 1.0


class Room:
    """`most` live items; `counts` says how many there are by the state's name."""

    def __init__(self, most: int, counts: Callable[[], Awaitable[dict[str, int]]], clock: Clock) -> None:
        self._most = most
        self._counts = counts
        self._clock = clock
        self._live = 0
        self._counted = -math.inf

    async def look(self, count: int) -> None:
        """Raises Overloaded when there is no room for so many more."""
        now = self._clock.monotonic()
        if abs(now - self._counted) > COUNTED or self._live + count > self._most:
            counts = await self._counts()
            self._live = sum(counts[state.label] for state in WAITING | LEASED)
            self._counted = now
        if self._live + count > self._most:
            raise Overloaded(
                f"the queue holds {self._live} workloads and takes at most {self._most}; try again later", 5.0
            )

    def taken(self, count: int) -> None:
        """So many more live."""
        self._live += count
