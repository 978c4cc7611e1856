"""Limit: how many items of one value of a dimension run at once, and how many start per second, with a burst.

A token bucket and a counter in one, since whoever pays one pays the other. Both are charged once per ⟨flow, n⟩, never
per item (FL2). In any stretch of t seconds at most rate * t + burst items start (FL6).
"""

from __future__ import annotations

import math
from typing import Any

from ...model.limits import Quota

#: A limit that has no concurrency leaves this much room.
UNLIMITED = 1 << 60


class Limit:
    """One limit, as one scheduler keeps it. `name` and `version` say which entry of which quotas it is, so that a
    budget store could divide it.

    Invariants: `running` is how many items are out that pay it (FL3), at most `concurrency` unless that was lowered
    below what ran, or runs went on that had waited for other work; 0 ≤ tokens ≤ burst. `reserver` is the flow that all
    of its rank and below wait for (FL5). `sleepers`: the flows that wait for room here, by who can run them.
    """

    __slots__ = ("_at", "_tokens", "burst", "concurrency", "name", "rate", "reserver", "running", "sleepers", "version")

    def __init__(self, name: str, quota: Quota, now: float, version: int = 0) -> None:
        self.name = name
        self.version = version
        self.running = 0
        self.concurrency = quota.concurrency or UNLIMITED
        self.rate = quota.rate
        self.burst = max(1.0, quota.burst or quota.rate)
        self._tokens = self.burst
        self._at = now
        self.reserver: Any = None
        self.sleepers: dict[Any, Any] = {}

    def change(self, quota: Quota, now: float, version: int) -> None:
        """Other numbers from now on; what had gathered stays, up to the new burst."""
        had_rate = self.rate
        self._refill(now)
        self.version = version
        self.concurrency = quota.concurrency or UNLIMITED
        self.rate = quota.rate
        self.burst = max(1.0, quota.burst or quota.rate)
        self._tokens = min(self._tokens, self.burst) if had_rate else self.burst
        self._at = max(self._at, now)

    def room(self, now: float) -> int:
        """How many more may start now; 0 or below: none."""
        room = self.concurrency - self.running
        if self.rate:
            if now > self._at:
                self._refill(now)
            if self._tokens < room:
                return int(self._tokens)
        return room

    def start(self, count: int) -> None:
        """`count` items start; at most what `room` just said."""
        self.running += count
        if self.rate:
            self._tokens -= count

    def found(self, count: int) -> None:
        """`count` items are out already: they were started before this limit was theirs."""
        self.running += count

    def end(self, count: int) -> None:
        """`count` items that paid are out no longer."""
        assert count <= self.running
        self.running -= count

    def next_at(self) -> float | None:
        """When the next whole token is there; None: no token is missing, an end is waited for."""
        if not self.rate or self._tokens >= 1 or self.running >= self.concurrency:
            return None
        return self._at + (math.floor(self._tokens) + 1 - self._tokens) / self.rate

    def full(self, now: float) -> str:
        """How full it is, for people."""
        self._refill(now)
        parts = []
        if self.concurrency < UNLIMITED:
            parts.append(f"{self.running} of {self.concurrency} run")
        if self.rate:
            parts.append(f"{self._tokens:.1f} of {self.burst:g} tokens at {self.rate:g} per second")
        return ", ".join(parts)

    def by_rate(self) -> bool:
        """Whether it is the rate that leaves no room."""
        return bool(self.rate) and self.running < self.concurrency

    def idle(self, now: float) -> bool:
        """Whether forgetting it changes nothing: nothing runs, nobody waits, and its bucket is full."""
        self._refill(now)
        return not (self.running or self.sleepers or self.reserver) and (not self.rate or self._tokens >= self.burst)

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
            self._at = now
