"""A clock that stands still until it is told to move."""

from __future__ import annotations


class ManualClock:
    """A Clock for tests: both its times move by `advance`, and the wall clock by `jump`; `used` is what processors did
    for this process. Seconds."""

    def __init__(self, wall: float = 1_700_000_000.0, monotonic: float = 1000.0) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self.used = 0.0

    def monotonic(self) -> float:
        return self._monotonic

    def wall(self) -> float:
        return self._wall

    def processor(self) -> float:
        return self.used

    def advance(self, seconds: float) -> None:
        """Moves both clocks on by `seconds`."""
        self._monotonic += seconds
        self._wall += seconds

    def jump(self, seconds: float) -> None:
        """Moves the wall clock alone by `seconds`, forwards or back, as an operator or a time server does."""
        self._wall += seconds
