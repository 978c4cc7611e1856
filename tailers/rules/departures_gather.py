"""Group commit of what leaves a stream: THE rule of how long it gathers behind a write.

A write of one costs a store nearly what one of fifty does: a commit, with its sync of the disk. Nobody waits for what
leaves a stream, but what is parked is due again: it is written by half of its delay, so that it is never later for
having gathered.
"""

from __future__ import annotations

#: Seconds behind a write in which more gather.
SHORT = 0.05
#: Behind a write of so many it is longer, as many come again: so long, …
MANY, LONGER = 8, 0.2
#: … and up to so long where nothing that gathers is due sooner than twice that.
LONGEST = 0.5


def gathers(written: int, soonest: float) -> float:
    """Seconds behind a write of so many items, of which the first of those that gather is due in `soonest` seconds."""
    return SHORT if written < MANY else max(LONGER, min(LONGEST, soonest / 2))
