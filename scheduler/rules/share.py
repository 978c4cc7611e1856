"""Shares: how much waits here where flows take turns by weight and cost, so that turns have a choice (FL21).

Weights and costs decide only between items that wait here. A tailer brings the next items of its source, of any tenant:
were a session's credit no more than workers hold, the tenant with most items in the source would start most. So where
quotas are set there is credit for the items that start in a while more, and of a flow that has more waiting than starts
of it in that while the tailers bring nothing until half of that is left: the room is others'. The turns alone decide
how much of each flow starts; here nothing is weighed again.

The idea is that of a small buffer for each flow before fair turns, as in fair queueing of networks (A. Demers and
others, 1989), bounded by time and not by length as in CoDel (K. Nichols and V. Jacobson, 2012).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .credit import steady

#: Seconds of starts of a flow that are worth waiting here; at least so many items; and, of what starts of all flows in
#: that time, this part divided evenly, so that what waits for others is here when they have nothing more.
AHEAD, LEAST, EVEN = 1.0, 8, 0.25
#: Multiples of that at which a flow is closed to the tailers, and those for which there is credit: more, so that one
#: that has nearly all that starts leaves room for the first item of another.
CLOSES, CREDIT = 2.0, 2.5
#: One with fewer than so many is never looked at, however many flows there are: its part would be no less.
FEWEST = 3
#: Items beyond what workers hold, while nobody knows how many start.
FIRST_CHOICE = 16
#: Seconds between two looks, where at most so many flows wait; with more they are rarer, so that they cost the same.
LOOK, FLOWS = 0.25, 2048
#: The wanted part of a cell's credit is rounded up to a power of two, and falls only below this part of it: sessions
#: hear of each change.
STEADY = 0.25


class FlowPace(NamedTuple):
    """Ends of a flow: how many when it was last looked at, and in a second since the look before (the more of the last
    two, and the last)."""

    ended: int
    rate: float = 0.0
    last: float = 0.0


def paced(before: FlowPace | None, ended: int, seconds: float) -> FlowPace:
    """The pace at a look, so many seconds after the one before; None: it was not looked at then."""
    if before is None or seconds <= 0:
        return FlowPace(ended)
    last = max(0, ended - before.ended) / seconds
    return FlowPace(ended, max(last, before.last), last)


def worth(rate: float, together: float, flows: int) -> float:
    """Number of items of a flow that are worth waiting here; `rate` and `together`: ends per second of this flow, and
    of all flows that compete."""
    return max(LEAST + AHEAD * rate, EVEN * AHEAD * together / flows)


def choice(worths: float, known: int, bound: int) -> int:
    """Items of a cell beyond what workers hold, when its flows are worth so many together; `known` is what it has."""
    wanted = min(bound, math.ceil(CREDIT * worths))
    return known if STEADY * known < wanted <= known else min(bound, steady(wanted))


def crowds(worths: float, bound: int) -> bool:
    """Whether there are so many flows that credit does not suffice for the few items that each may have waiting here:
    then flows with few items are looked at, too."""
    return CREDIT * worths > bound


def part(worth: float, worths: float, bound: int) -> int:
    """Number of items of a flow that may wait here before it is closed, where there is credit for no more than `bound`
    beyond what workers hold; it is opened when half are left."""
    return max(2, int(CLOSES * worth * min(1.0, bound / (CREDIT * worths))))


def most(part: int) -> int:
    """Number of items on their way at the closing that may stay; the others go back."""
    return int(part * CREDIT / CLOSES)
