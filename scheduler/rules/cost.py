"""Cost: slot-seconds that running items have taken, accrued while they run and never in one sum an hour later (FL8).

An item that starts is charged the average of such items; its real cost is put right as soon as it is looked at again.
Counted only while something competes: nobody's turn is asked for while there is room for all.
"""

from __future__ import annotations

#: Speed at which the average follows new ends: the part that a look's own average has.
PACE = 0.5
#: Cost (slot-seconds) of an item of which nobody knows how long such run, and the least one, so that items count.
FIRST, LEAST = 0.01, 0.0001
#: Slot-seconds by which one look may put a charge right, at most.
MOST = 10.0


class Metered:
    """The runs of a function or a flow; nothing is kept of one that was never metered.

    running   how many are out; -1 time the moment at which each began is in `area`
    area      slot-seconds since the last look are area + running * now, at any moment: who starts or ends is one sum
    presumed  what was charged since the last look
    ended     how many ended so far; `counted` of them before the last look
    mean      slot-seconds that one takes on average; 0: nothing ended yet

    Who starts `count` does `running += count`, `area -= count * now`; who ends them, the opposite and `ended += count`.
    It is written out where it is done for each flow.
    """

    running = 0
    area = 0.0
    presumed = 0.0
    ended = 0
    counted = 0
    mean = 0.0

    def start(self, count: int, now: float) -> None:
        """Counts `count` runs that start."""
        self.running += count
        self.area -= count * now

    def end(self, count: int, now: float) -> None:
        """Counts `count` runs that are out no longer."""
        self.running -= count
        self.area += count * now
        self.ended += count

    def settle(self, now: float) -> float:
        """Slot-seconds that were charged too little since the last look (below zero: too much)."""
        busy = self.area + self.running * now
        self.area = -self.running * now
        if self.ended > self.counted:
            mean = self.mean or FIRST
            self.mean = mean + PACE * (max(LEAST, busy / (self.ended - self.counted)) - mean)
        excess = busy - self.presumed
        self.presumed = 0.0
        self.counted = self.ended
        return max(-MOST, min(MOST, excess))

    def recount(self, running: int, now: float) -> None:
        """Takes the number of runs that are out, as found by counting them; uncounted ones are charged to nobody."""
        self.running = running
        self.area = -running * now
        self.presumed = 0.0
        self.counted = self.ended
