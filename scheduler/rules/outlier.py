"""Outliers among workers (outlier detection, ejection; the idea is Envoy's): a worker at which work fails that goes
well at others gets none for a while, then some to try. THE rule, at one glance.

    state     gets                     becomes
    IN        its share                OUT when it stands out, and at most half of its peers are out
    OUT       nothing                  PROBING after its pause; at once when no peer is left that takes work
    PROBING   one item at a time       IN when PROBES of them ended well; OUT, for twice as long, when one did not

Peers are workers that run the same functions: failures everywhere are the functions' own fault, or a downstream's.
"""

from __future__ import annotations

import math
from enum import Enum

#: Outcomes (decayed) that say something of a worker, and of its peers.
LEAST = 10.0
#: The share of failures at which it stands out, if that is so much more than its peers' share.
SHARE, APART = 0.5, 0.3
#: Seconds in which what was seen counts half.
HALF_LIFE = 10.0
#: Items that must end well, one after the other, before it gets its share again.
PROBES = 5
#: The longest pause, in seconds; and the pauses without another after which the next one is the first again.
LONGEST_PAUSE, FORGIVEN = 300.0, 10.0


class WorkerState(Enum):
    """States of a worker's pool as its outcomes show it."""

    IN = "in"
    OUT = "out"
    PROBING = "probing"


class WorkerHealth:
    """The outcomes of one pool of a worker. `pause`: seconds of its first ejection.

    Invariants: good and bad are never below 0; `until` counts while it is OUT.
    """

    __slots__ = ("_at", "_back_at", "_pause", "_times", "bad", "good", "passed", "state", "until")

    def __init__(self, pause: float, now: float) -> None:
        self.state = WorkerState.IN
        self.good = self.bad = 0.0
        self.until = 0.0
        self.passed = 0
        self._pause = pause
        self._at = now
        self._times = 0
        self._back_at = -math.inf

    @property
    def share(self) -> float:
        """The part of its outcomes that failed."""
        return self.bad / (self.good + self.bad) if self.good + self.bad else 0.0

    def note(self, good: int, bad: int, now: float) -> None:
        """Counts items that ended there."""
        self._decay(now)
        self.good += good
        self.bad += bad
        if self.state is WorkerState.PROBING:
            self.passed = 0 if bad else self.passed + good
            if bad:
                self.eject(now)
            elif self.passed >= PROBES:
                self.state, self.good, self.bad, self._back_at = WorkerState.IN, 0.0, 0.0, now

    def _decay(self, now: float) -> None:
        kept = 0.5 ** ((now - self._at) / HALF_LIFE) if now > self._at else 1.0
        self.good, self.bad, self._at = self.good * kept, self.bad * kept, now

    def quiet(self, now: float) -> bool:
        """Whether nothing of it is worth keeping."""
        self._decay(now)
        return self.state is WorkerState.IN and self.bad < 1 and now - self._back_at > FORGIVEN * self._last_pause

    @property
    def _last_pause(self) -> float:
        return min(LONGEST_PAUSE, self._pause * 2.0 ** max(0, self._times - 1)) if self._times else 0.0

    def eject(self, now: float) -> None:
        """Ejects it: it gets nothing for its pause, twice as long as the last one, unless that is long ago."""
        if now - self._back_at > FORGIVEN * self._last_pause and self.state is WorkerState.IN:
            self._times = 0
        self._times += 1
        self.state, self.until = WorkerState.OUT, now + self._last_pause

    def probe(self) -> None:
        """Probes it, whose pause is over: it gets one item at a time."""
        self.state, self.passed = WorkerState.PROBING, 0


def stands_out(own: WorkerHealth, peers: list[WorkerHealth]) -> bool:
    """Whether work fails at a worker that goes well at its peers."""
    good, bad = sum([peer.good for peer in peers]), sum([peer.bad for peer in peers])
    if own.good + own.bad < LEAST or good + bad < LEAST:
        return False
    return own.share >= SHARE and own.share - bad / (good + bad) >= APART


def may_eject(out: int, group: int) -> bool:
    """Whether one more of so many workers may be out: at most half of them, so that the others can do the work."""
    return 2 * (out + 1) <= group
