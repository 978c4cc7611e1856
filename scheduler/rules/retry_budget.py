"""Retry budget: retries of a function that calls a downstream are a part of its first attempts (FL15).

A downstream that fails is called again and again by failed items; so retries would come on top of a load that it cannot
take as it is. They start at no more than a part of the rate of first attempts over a sliding window, and always at one
a second. Retries beyond that wait; they spend no attempt, and are not lost.
"""

from __future__ import annotations

from collections import deque

from ...model.limits import Quota
from .limit import Limit

#: The window in seconds, how often it is looked at, and the rate that there is always.
WINDOW, LOOK, LEAST = 10.0, 0.5, 1.0
#: Seconds without a failure after which it is forgotten.
FORGOTTEN = 300.0


class FirstAttempts(Limit):
    """The limit that first attempts of a function pay. It limits nothing, and counts what started."""

    __slots__ = ("_found",)

    def __init__(self, function: str, now: float) -> None:
        super().__init__(f"first attempts of {function}", Quota(function), now)
        self._found = 0

    @property
    def started(self) -> int:
        """Number of first attempts that started since the function pays this limit."""
        return self.ended + self.running - self._found

    def recounted(self, before: int) -> None:
        """Takes over items that are out as they were counted anew: an item found so did not start now."""
        self._found += self.running - before


class RetryBudget(Limit):
    """The budget of one function. `firsts` is what its first attempts pay, which limits nothing and counts them.

    Invariant: `rate` is `part` of the first attempts a second within the window, at least LEAST.
    """

    __slots__ = ("_failed_at", "_looked_at", "_seen", "firsts", "part")

    def __init__(self, function: str, part: float, now: float) -> None:
        super().__init__(f"retries of {function}", Quota(function, rate=LEAST, burst=LEAST), now)
        self.firsts = FirstAttempts(function, now)
        self.part = part
        self._failed_at = self._looked_at = now
        self._seen: deque[tuple[float, int]] = deque([(now, 0)])

    @property
    def reservable(self) -> bool:
        """Retries that wait for it keep nothing else for themselves."""
        return False

    def failed(self, now: float) -> None:
        """Notes an attempt that failed."""
        self._failed_at = now

    def look(self, now: float) -> None:
        """Time has passed."""
        if now - self._looked_at < LOOK:
            return
        self._looked_at = now
        self.refill(now)
        total = self.firsts.started
        self._seen.append((now, total))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()
        self.rate = max(LEAST, self.part * (total - self._seen[0][1]) / WINDOW)
        self.burst = max(LEAST, self.rate * LOOK)
        self.tokens = min(self.tokens, self.burst)

    def forgettable(self, now: float) -> bool:
        """Whether nothing of it is worth remembering."""
        return now - self._failed_at >= FORGOTTEN and not self.sleepers and not self.running
