"""Reserves: the part of the capacity that a function or a tenant is sure of, as a bucket of slot-seconds (FL18).

A function or tenant below its reserve goes before all others, whatever the turns say; the unused part of a reserve is
lent, unless it says otherwise. (Reserved and opportunistic quota as in XFaaS, SOSP 2023.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Seconds of a reserve that gather while it is not used, and for which what was used beyond it is remembered.
WINDOW = 10.0


class Reserve:
    """A reserve of `slots` at every moment on average. `level` is how many slot-seconds it has left, as of `at`; within
    one window of zero on either side. `flows` are those that use it."""

    __slots__ = ("at", "flows", "lend", "level", "name", "slots")

    def __init__(self, name: str, slot_seconds_per_minute: float, *, lend: bool, now: float) -> None:
        self.name = name
        self.slots = slot_seconds_per_minute / 60.0
        self.lend = lend
        self.level = self.slots * WINDOW
        self.at = now
        self.flows: dict[Any, None] = {}

    def left(self, now: float) -> float:
        """Slot-seconds that are left of it; 0 or below: it is used up for now."""
        if now > self.at:
            self.level = min(self.slots * WINDOW, self.level + (now - self.at) * self.slots)
            self.at = now
        return self.level

    def take(self, cost: float) -> None:
        """Takes slot-seconds that were used, or were found to have been used."""
        self.level = max(-self.slots * WINDOW, min(self.slots * WINDOW, self.level - cost))

    def unused(self) -> float:
        """Number of its slots that nothing runs in."""
        running: int = sum([flow.running for flow in self.flows])
        return max(0.0, self.slots - running)


def entitled(reserves: Iterable[Reserve], now: float) -> bool:
    """Whether a flow with these reserves is below one of them."""
    return any(reserve.left(now) > 0 for reserve in reserves)


def opportunistic_slots(ceiling: float, slots: float) -> int:
    """Number of the slots kept for nobody that opportunistic functions may fill; of few one, if there is one."""
    return max(1, int(ceiling * slots)) if slots >= 1 else 0
