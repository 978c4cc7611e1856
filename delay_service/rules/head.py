"""When the head of a rung may move, and that a clock set wrong neither rushes it nor holds it for long.

All items of a rung wait the same time, so they may move in the order in which they entered: only the head is timed. Two
clocks are at work. *Wall* time says when an item entered and when it is due. It may be set back, and then a head would
seem to have entered in the future; *monotonic* time tells how long this process has really waited. A head moves when
either says that its wait is over, so:

- clock set back: the head waits no longer than one rung from when it was first seen. What it proved (the wall clock is
  `lead` seconds behind) holds for those behind it that also seem to enter in the future. One that entered after the
  step does not seem so, and waits its own time;
- clock set forward, or the machine slept: the wall clock says it is over, and it is.

Moving is not starting: whether an item is *due* is the ladder's question, and it asks the wall clock alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .ladder import GRAIN

#: Longest sleep on one head, seconds: how soon a wall clock that was set forward is noticed.
LONGEST_SLEEP = 60.0


@dataclass(slots=True)
class Head:
    """The timing state of one rung. Invariant: lead ≥ 0, and `waiting_since` is set only with `waiting_for`."""

    wait: float
    lead: float = 0.0
    waiting_for: int = -1  # position of the head that is being timed
    waiting_since: float = 0.0  # monotonic

    def ready(
        self,
        positions: Sequence[int],
        entered: Sequence[float],
        releases: Iterable[float],
        wall: float,
        monotonic: float,
    ) -> tuple[int, float]:
        """How many of these items, from the first on, may move now, and how long to sleep for the next one (0 when all
        may). `entered` and `releases` are wall times, `releases` as `Ladder.release_at` gives them, which need not be
        known beyond the first that may not move."""
        for index, (position, came, release) in enumerate(zip(positions, entered, releases, strict=True)):
            left = release - wall - (self.lead if came > wall else 0.0)
            if left > 0:
                if position != self.waiting_for:
                    self.waiting_for, self.waiting_since = position, monotonic
                left = min(left, self.wait + GRAIN - (monotonic - self.waiting_since))
                if left > 0:
                    return index, min(left, LONGEST_SLEEP)
                self.lead = max(0.0, release - wall)
        return len(positions), 0.0
