"""Group commit of departures from a stream: THE rule of how long they gather behind a write.

A write of one costs a store nearly what one of fifty does: a commit, with its sync of the disk. Nobody waits for a
departure, but a parked item is due again: it is written before half of its delay is over, so that it is never late for
having gathered.
"""

from __future__ import annotations

from ...model.linger import Linger

#: Behind a write of few.
SHORT = Linger(0.05)
#: Behind a write of so many it is longer, as many come again: so long, …
MANY = 8
LONGER = Linger(0.2)
#: … and up to so long where nothing that gathers is due sooner than twice that.
LONGEST = Linger(0.5)


def gathers(written: int, soonest: float) -> Linger:
    """The linger behind a write of so many items, where the first of the items that gather is due in `soonest`
    seconds."""
    return SHORT if written < MANY else max(LONGER, min(LONGEST, Linger(soonest / 2)))
