"""Cost: how many slot-seconds what runs has taken, accrued while it runs and never in one sum an hour later (FL8).

What starts is charged what its function's items take on average; what it really took is put right as soon as it is
looked at again. Counted only while something competes: nobody's turn is asked for while there is room for all.
"""

from __future__ import annotations

#: How fast the average follows what ends: the part that a look's own average has.
PACE = 0.5
#: Cost (slot-seconds) of an item of a function of which nothing ended yet, and the least one, so that items count.
FIRST, LEAST = 0.01, 0.0001
#: Slot-seconds by which one look may put a charge right, at most.
MOST = 10.0


class Meter:
    """The runs of a function or a flow. Invariants: `running` is how many are out; `busy` is what they took since the
    last look, in slot-seconds, and `presumed` what was charged for since."""

    __slots__ = ("_at", "busy", "ended", "mean", "presumed", "running")

    def __init__(self, now: float) -> None:
        self._at = now
        self.running = 0
        self.busy = 0.0
        self.presumed = 0.0
        self.ended = 0
        self.mean = FIRST

    def start(self, count: int, now: float) -> float:
        """So many start; returns what they are charged."""
        self.busy += self.running * (now - self._at)
        self._at = now
        self.running += count
        cost = count * self.mean
        self.presumed += cost
        return cost

    def end(self, count: int, now: float) -> None:
        """So many are out no longer."""
        self.busy += self.running * (now - self._at)
        self._at = now
        self.running -= count
        self.ended += count

    def settle(self, now: float) -> float:
        """What was charged too little since the last look (below zero: too much)."""
        busy = self.busy + self.running * (now - self._at)
        self._at = now
        if self.ended:
            self.mean += PACE * (max(LEAST, busy / self.ended) - self.mean)
        excess = busy - self.presumed
        self.busy = self.presumed = 0.0
        self.ended = 0
        return max(-MOST, min(MOST, excess))

    def recount(self, running: int, now: float) -> None:
        """So many are out, as was found by counting them."""
        self.busy += self.running * (now - self._at)
        self._at = now
        self.running = running
