"""The head of a rung: when it may move. A clock that is set wrong neither rushes it nor holds it for long.

All items of a rung wait the same time, so they may move in the order in which they entered: only the head is timed. Two
clocks are at work. The *wall* clock of the rung's log says when an item entered, and so it alone says how long ago that
is: by ours, which may be another host's and seconds ahead, what entered just now might seem to have waited for long. It
may be set back, and then a head would seem to have entered in the future; our *monotonic* time tells how long this
process has really waited. A head moves when either says that its wait is over, so:

- clock set back: the head waits no longer than one rung from when it was first seen. What it proved (the wall clock is
  `lead` seconds behind) holds for those behind it that also seem to enter in the future. One that entered after the
  step does not seem so, and waits its own time;
- clock set forward, or the machine slept: the wall clock says it is over, and it is.

Moving is not starting: whether an item is *due* is the ladder's question, and it asks our own wall clock alone. So an
item that moves and is not due waits once more, for the time of a rung, and the hops of an item are those of its chain,
whatever the two clocks say of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...model.linger import RUNG_MOVES
from .ladder import GRAIN

#: Longest sleep on one head, seconds: how soon a wall clock that was set forward is noticed.
LONGEST_SLEEP = 60.0

#: Items due within this part of a rung's wait, and within its linger, move together: a move costs a commit here
#: and one where it goes.
TOGETHER = 0.25
LONGEST_TOGETHER = RUNG_MOVES.seconds
#: … and up to three times that after a move into many streams, so many seconds for each: what is due of many functions
#: comes one by one to each of them, and whoever reads it pays for every stream that has something. It stays below the
#: smallest rung of the ladder, by which an item may be late.
FOR_EACH_STREAM = 0.0025
MANY_STREAMS = 2


def gathers(wait: float, streams: int) -> float:
    """Seconds behind a move into so many streams in which more becomes due that then moves together."""
    few = min(LONGEST_TOGETHER, TOGETHER * wait)
    return few + min(MANY_STREAMS * few, FOR_EACH_STREAM * streams)


def behind(said: float, ago: float, wall: float) -> float:
    """Seconds by which the clock that dates a rung's entries is behind our own, which says `wall`. That clock `said`
    its time `ago` seconds ago, with what was read then (0: nothing)."""
    return wall - said - ago if said else 0.0


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
        entered: Iterable[float],
        releases: Iterable[float],
        wall: float,
        monotonic: float,
    ) -> tuple[int, float]:
        """Number of these items, from the first on, that may move now, and seconds to sleep for the next one (0 when
        all may). `entered` and `releases` are times of our wall clock, `releases` as `Ladder.release_at` gives them;
        they need not be known beyond the first that may not move."""
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
