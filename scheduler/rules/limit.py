"""Limit: how many items of one value of a dimension run at once, and how many start per second, with a burst.

A token bucket and a counter in one, since an item that pays one pays the other. Both are charged once per ⟨flow, n⟩,
never per item (FL2). In any stretch of t seconds at most rate * t + burst items start (FL6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...model.limits import Quota

#: A limit that has no concurrency leaves this much room.
UNLIMITED = 1 << 60


class Limit:
    """One limit, as one scheduler keeps it. `name` and `version` say which entry of which quotas it is, so that a
    budget store could divide it; `units` are its rates in units of one's own (unit_limit.py).

    Invariants: `running` is how many items are out that pay it (FL3), at most `concurrency` unless that was lowered
    below what ran, or runs went on that had waited for other work; `ended` and `running` together are how many started,
    which waiting for other work and going on leave as they are; 0 ≤ tokens ≤ burst as of `at`, and without a rate both
    are without end. `reserver` is the flow that all of its rank and below wait for (FL5). `sleepers`: the flows
    that wait for room here, by who can run them.
    """

    __slots__ = (
        "at",
        "burst",
        "concurrency",
        "ended",
        "name",
        "rate",
        "reserver",
        "running",
        "sleepers",
        "tokens",
        "units",
        "unreserved_until",
        "version",
    )

    def __init__(self, name: str, quota: Quota, now: float, version: int = 0) -> None:
        self.name = name
        self.version = version
        self.running = 0
        self.ended = 0
        self.concurrency = quota.concurrency or UNLIMITED
        self.rate = quota.rate
        self.burst = max(1.0, quota.burst or quota.rate)
        self.tokens = self.burst if quota.rate else math.inf
        self.at = now if quota.rate else math.inf
        self.reserver: Any = None
        self.unreserved_until = -math.inf
        self.sleepers: dict[Any, Any] = {}
        self.units: tuple[Any, ...] = ()

    @property
    def shut(self) -> bool:
        """Whether it is closed until somebody opens it."""
        return False

    @property
    def reservable(self) -> bool:
        """Whether a flow that waits for several limits may reserve this one (FL5)."""
        return True

    def recounted(self, before: int) -> None:
        """Hears, in a subclass, that running items were counted anew; `before`: how many it had."""

    def change(self, quota: Quota, now: float, version: int) -> None:
        """Takes other numbers from now on; gathered tokens stay, up to the new burst."""
        had_rate = self.rate
        self.refill(now)
        self.version = version
        self.concurrency = quota.concurrency or UNLIMITED
        self.rate = quota.rate
        self.burst = max(1.0, quota.burst or quota.rate)
        if not quota.rate:
            self.tokens = self.at = math.inf
        elif had_rate:
            self.tokens = min(self.tokens, self.burst)
        else:
            self.tokens, self.at = self.burst, now

    def room(self, now: float) -> int:
        """Number of items that may start now; 0 or below: none."""
        if now > self.at:
            self.refill(now)
        room = self.concurrency - self.running
        return room if room <= self.tokens else int(self.tokens)

    def beside(self, room: int) -> int:
        """The part of its room that is left to others where it is reserved: all but one place or token. Nothing where
        it has units: how much of them is needed nobody knows."""
        return 0 if self.units else room - 1

    def start(self, count: int) -> None:
        """Counts `count` items that start; at most what `room` just said."""
        self.running += count
        self.tokens -= count

    def found(self, count: int) -> None:
        """Counts `count` items that are out already: they were started before this limit was theirs."""
        self.running += count

    def again(self, count: int) -> None:
        """Counts `count` items that are out again, or (below zero) are no more; none of them starts or ends by that."""
        self.running += count
        self.ended -= count

    def end(self, count: int) -> None:
        """Counts `count` items that paid and are out no longer."""
        assert count <= self.running
        self.running -= count

    def next_at(self) -> float | None:
        """Time at which the next whole token is there; None: no token is missing, an end is waited for."""
        if not self.rate or self.tokens >= 1 or self.running >= self.concurrency:
            return None
        return self.at + (math.floor(self.tokens) + 1 - self.tokens) / self.rate

    def full(self, now: float) -> str:
        """The fill level, for people."""
        self.refill(now)
        parts = []
        if self.concurrency < UNLIMITED:
            parts.append(f"{self.running} of {self.concurrency} run")
        if self.rate:
            parts.append(f"{self.tokens:.1f} of {self.burst:g} tokens at {self.rate:g} per second")
        return ", ".join(parts)

    def by_rate(self) -> bool:
        """Whether it is the rate that leaves no room."""
        return bool(self.rate) and self.running < self.concurrency

    def idle(self, now: float) -> bool:
        """Whether forgetting it changes nothing: nothing runs, nobody waits, and its bucket is full."""
        self.refill(now)
        used = self.running or self.sleepers or self.reserver
        full = not self.rate or self.tokens >= self.burst
        return full and not used and all(unit.idle(now) for unit in self.units)

    def refill(self, now: float) -> None:
        """Adds the tokens that came by now; without a rate none come."""
        if now > self.at:
            self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
            self.at = now


def take_all(wanted: Mapping[Limit, int], now: float) -> list[Limit]:
    """Starts so many of each, if all of them have room; else nothing starts, and those that have none, or are reserved,
    are returned. It is `refill`, `room` and `start` written out, since it is done for each limit of each batch."""
    lacking = []
    for limit, count in wanted.items():
        if now > limit.at:
            tokens, burst = limit.tokens + (now - limit.at) * limit.rate, limit.burst
            limit.tokens = tokens if tokens < burst else burst
            limit.at = now
        limit.tokens -= count
        limit.running += count
        if limit.tokens < 0 or limit.running > limit.concurrency or limit.reserver is not None:
            lacking.append(limit)
    if lacking:
        for limit, count in wanted.items():
            limit.tokens = min(limit.burst, limit.tokens + count) if limit.rate else math.inf
            limit.running -= count
    return lacking
