"""The clocks of a simulated machine: each drifts by its own rate, and its wall clock may jump."""

from __future__ import annotations

from typing import Protocol

#: Wall clock, seconds, at the beginning of every world.
EPOCH = 1_700_000_000.0
#: True seconds by which a moment is put off when rounding would make a timer ring too early.
_STEP = 1e-9


class Moment(Protocol):
    """The world, as far as a clock needs it: the true time, and for how many turns the loop that turns is alone."""

    alone: int

    @property
    def now(self) -> float: ...


class MachineClock:
    """A Clock (foundation/clock.py) over the world's true time. `rate`: seconds that it counts in a true second, within
    1 ± rho; `offset`: what its monotonic clock said at the beginning; `ahead`: how far its wall clock is ahead."""

    def __init__(self, moment: Moment, rate: float = 1.0, offset: float = 1000.0) -> None:
        self.moment = moment
        self.rate = rate
        self.offset = offset
        self.ahead = 0.0

    def monotonic(self) -> float:
        return self.offset + self.rate * self.moment.now

    def wall(self) -> float:
        return EPOCH + self.moment.now + self.ahead

    def processor(self) -> float:
        return 0.0  # what a simulated process calculates takes no time

    def jump(self, seconds: float) -> None:
        """Moves the wall clock; the monotonic one does not jump."""
        self.ahead += seconds

    def true_at(self, monotonic: float) -> float:
        """The first true time at which the monotonic clock says at least `monotonic`."""
        true = (monotonic - self.offset) / self.rate
        while self.offset + self.rate * true < monotonic:
            true += _STEP
        return true
