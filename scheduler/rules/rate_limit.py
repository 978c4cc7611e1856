"""Rate limit: a token bucket per function (starts per second, with a burst).

Charged once per ⟨function, n⟩, never per item. In any stretch of t seconds at most rate * t + burst items start.
"""

from __future__ import annotations

import math


class TokenBucket:
    """A token bucket. Invariant: 0 ≤ tokens ≤ burst. `rate` is per second, above 0; a `burst` of 0 means the rate, at
    least 1."""

    __slots__ = ("_at", "_tokens", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = max(1.0, burst or rate)
        self._tokens = self.burst
        self._at = now

    def change(self, rate: float, burst: float, now: float) -> None:
        """Other limits from now on; what had gathered stays, up to the new burst."""
        self._refill(now)
        self.rate = rate
        self.burst = max(1.0, burst or rate)
        self._tokens = min(self._tokens, self.burst)

    def available(self, now: float) -> int:
        """How many items may start now."""
        self._refill(now)
        return int(self._tokens)

    def take(self, count: int) -> None:
        """`count` items start; at most what `available` just said."""
        assert count <= self._tokens + 1e-6
        self._tokens = max(0.0, self._tokens - count)

    def next_at(self) -> float:
        """When the next whole token is there."""
        missing = math.floor(self._tokens) + 1 - self._tokens if self._tokens < 1 else 0.0
        return self._at + missing / self.rate

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
            self._at = now
