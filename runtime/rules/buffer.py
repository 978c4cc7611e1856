"""A pool's buffer (prefetch): its slots, and about 50 ms of work more. So a pool never waits for the scheduler, and
never hoards work that another worker could run (ATF's local buffer per priority)."""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds of recent completions that are buffered beside the slots, and the most items that may be: two executors of
#: no-op functions end some 40,000 a second, of which a round trip under load holds 4,000.
AHEAD = 0.05
MOST_AHEAD = 4096
#: Seconds over which completions are averaged.
SPAN = 0.25
#: A new limit is announced when it moves by more than this share.
STEP = 0.2


def limit(slots: int, rate: float) -> int:
    """Items that may be assigned at once at `rate` completions a second: within [slots, slots + MOST_AHEAD]."""
    return slots + min(MOST_AHEAD, max(0, round(rate * AHEAD)))


@dataclass(slots=True)
class PrefetchDepth:
    """One pool's depth. Invariant: slots ≤ announced ≤ slots + MOST_AHEAD."""

    slots: int
    announced: int = 0
    rate: float = 0.0
    _count: int = 0
    _since: float = 0.0

    def __post_init__(self) -> None:
        self.announced = self.slots

    def completed(self, count: int, now: float) -> bool:
        """`count` items ended at `now`. True: `announced` has changed."""
        self._count += count
        span = now - self._since
        if span < SPAN:
            return False
        measured = self._count / span
        # Up at once, down by halves: a pause between two batches must not starve the second.
        self.rate = measured if measured > self.rate else (self.rate + measured) / 2
        self._count, self._since = 0, now
        wanted = limit(self.slots, self.rate)
        if abs(wanted - self.announced) <= STEP * self.announced:
            return False
        self.announced = wanted
        return True
