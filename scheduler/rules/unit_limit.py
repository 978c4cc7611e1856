"""Unit limit: how much of a unit of one's own (tokens, rows, bytes) may be used a second, with a burst (FL20).

A token bucket that pays by estimate. An item starts when the bucket holds its estimated use, or is full where that is
more than it can hold. The use that its run reports puts the bucket right: a missing amount is taken from it, and may
leave a debt; an amount too much is given back, as far as the bucket could have kept it since the item started. So in
any stretch of t seconds items that start use at most rate * t + burst, but for runs in flight that were estimated too
low, and for one item alone that needs more than the burst.

A run of which nothing is heard (it was lost, or said nothing) keeps its estimate: it may have used that.
"""

from __future__ import annotations

from ...model.limits import Quota
from ...model.unit_rate import USUAL_ESTIMATE, UnitRate
from .limit import Limit

#: Seconds of the rate that a debt comes to at most: one wrong number shuts nobody out for longer.
LONGEST_DEBT = 3600.0
#: Heights of the bucket that are remembered for giving back; beyond them neighbours count as the higher one.
MOST_HEIGHTS = 64
#: Precision, as a part of a bucket's size, to which its level is compared with a need: sums of fractions are not exact.
CLOSE = 1e-9

#: Averages of what the runs of a function used: by downstream (empty: of all together) and unit.
Averages = dict[tuple[str, str], float]
NONE_YET: Averages = {}


class UnitLimit(Limit):
    """One rate in a unit. `tokens` is what the bucket holds, below zero: its debt; `running` is not counted here.

    Invariants: -LONGEST_DEBT * rate (or -burst, if that is more) ≤ tokens ≤ burst; `_heights` are how high the bucket
    was before it fell: (number of the fall, height), rising and falling, so that for any fall the highest since then is
    known, or one that is higher; `need` is what who is next among the sleepers needs.
    """

    __slots__ = ("_falls", "_heights", "downstream", "need", "unit", "usual")

    def __init__(self, name: str, downstream: str, rate: UnitRate, now: float, version: int = 0) -> None:
        super().__init__(f"{name} in {rate.unit}", Quota(rate=rate.rate, burst=rate.burst), now, version)
        self.downstream = downstream
        self.unit = rate.unit
        self.usual = rate.estimate or USUAL_ESTIMATE
        self.need = 0.0
        self._heights: list[tuple[int, float]] = []
        self._falls = 0

    def renew(self, rate: UnitRate, now: float, version: int) -> None:
        """Takes other numbers from now on; the amount that had gathered stays, up to the new burst."""
        self.change(Quota(rate=rate.rate, burst=rate.burst), now, version)
        self.usual = rate.estimate or USUAL_ESTIMATE
        self._heights = [(fall, min(height, self.burst)) for fall, height in self._heights]

    def holds(self, now: float) -> float:
        """The amount it holds now."""
        if now > self.at:
            self.refill(now)
        return self.tokens

    def enough(self, held: float, amount: float) -> bool:
        """Whether an item that is estimated at so much may start while the bucket holds `held`."""
        return held >= min(amount, self.burst) - CLOSE * self.burst

    def take(self, amount: float, now: float) -> int:
        """Charges an item that starts and is estimated at so much. Returns the number of the fall to correct it by."""
        self._fall(amount, now)
        return self._falls

    def put_right(self, estimate: float, used: float, since: int, now: float) -> None:
        """Corrects the charge of a run that was charged `estimate` and used so much; `since` is what `take` said."""
        if used > estimate:
            self._fall(used - estimate, now)
        elif used < estimate:
            self._give_back(estimate - used, since, now)

    def _fall(self, amount: float, now: float) -> None:
        self._note(self.holds(now))
        self.tokens = max(self.tokens - amount, -max(self.burst, LONGEST_DEBT * self.rate))

    def _give_back(self, amount: float, since: int, now: float) -> None:
        """Gives back an amount, as far as the bucket could have kept it: had it never been taken, the bucket might have
        been full since, and later tokens would have run over."""
        held, burst = self.holds(now), self.burst
        highest = max([held, *(height for fall, height in self._heights if fall >= since)])
        self._heights = [
            (fall, min(burst, height + amount) if fall >= since else height) for fall, height in self._heights
        ]
        self.tokens = min(burst, held + max(0.0, min(amount, burst - highest)))

    def _note(self, height: float) -> None:
        """Notes the height of the bucket before it falls."""
        heights = self._heights
        while heights and heights[-1][1] <= height:
            heights.pop()
        heights.append((self._falls, height))
        self._falls += 1
        if len(heights) > MOST_HEIGHTS:
            pairs = zip(heights[::2], heights[1::2], strict=False)
            self._heights = [(later, high) for (_, high), (later, _) in pairs] + heights[len(heights) & ~1 :]

    @property
    def waiting(self) -> bool:
        """Whether anybody waits here, or was woken and not tried yet."""
        return any(turns.size or turns.woken for turns in self.sleepers.values())

    def room(self, now: float) -> int:
        """Room for the next flow: 1 if it may start, else 0."""
        return int(self.enough(self.holds(now), self.need))

    def next_at(self) -> float | None:
        """Time at which there is as much as the next flow needs; None: there is already."""
        return self.has_at(self.need)

    def has_at(self, amount: float) -> float | None:
        """Time at which there is enough for an item that is estimated at so much; None: there is already."""
        missing = min(amount, self.burst) - self.tokens
        return None if missing <= CLOSE * self.burst else self.at + missing / self.rate

    def full(self, now: float) -> str:
        """The fill level, for people."""
        held = self.holds(now)
        level = f"{held:,.10g} of {self.burst:,.10g}" if held >= 0 else f"a debt of {-held:,.10g}"
        return f"{level} {self.unit} at {self.rate:,.10g} per second"

    def idle(self, now: float) -> bool:
        return not self.waiting and self.holds(now) >= self.burst
