"""Time as an argument: shells take a Clock, rules take `now`."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """`monotonic` orders and measures within this host; `wall` is what people and stores write down. Seconds."""

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...


class SystemClock:
    """This machine's clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


SYSTEM_CLOCK = SystemClock()
