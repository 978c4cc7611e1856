"""Credit (a flow-control window): how many items each session may have pushed and not yet got back.

Limits are absolute, per ⟨function, priority⟩ cell and in total, so repeating one is harmless and none can leak. They
follow the capacity of the workers: enough that these never wait for a push, little enough that the rest stays in its
source, where it costs nothing. A cell gets at most half of a session's total, so one that floods leaves room for all
others, and less where a limit of its function says that more could not start soon.
"""

from __future__ import annotations

import math

from ...model.limits import Quota

#: A session may always have this many items out: a flight's worth of slack for a small installation.
LEAST_TOTAL = 64
#: And of one cell this many, whatever its limits: a batch must be worth its message.
LEAST_CELL = 16
#: Seconds of a rate-limited function's work to keep at hand.
RATE_AHEAD = 1.0
#: Multiples of a concurrency limit to keep at hand.
CONCURRENCY_AHEAD = 4


def steady(capacity: int) -> int:
    """A capacity rounded up to a power of two: credit changes when capacity doubles, not whenever it trembles."""
    return 1 << (capacity - 1).bit_length() if capacity > 0 else 0


def session_total(capacity: int, bound: int, choice: int = 0) -> int:
    """Items of one session in all, given what all pools together can hold: two to four times that; and of all cells
    together so many twice, so that turns have a choice (share.py)."""
    return max(LEAST_TOTAL, min(bound, 2 * (steady(capacity) + choice)))


def cell_limit(
    capacity: int, total: int, lane_items: int, sessions: int, quota: Quota | None, spare: int = 0, choice: int = 0
) -> int:
    """Items of one cell for one session, given what the function's own pools can hold; 0: no pool can run it. `spare`
    of them are for what waits for other work, which holds its session's credit and nothing else; `choice` so that turns
    have one (share.py).

    The lane is divided between the sessions, so that what conforming sessions push always fits into it.
    """
    if capacity <= 0:
        return 0
    limit = min(2 * steady(capacity) + choice, total // 2)
    spare += choice
    if quota is not None and quota.concurrency:
        limit = min(limit, CONCURRENCY_AHEAD * quota.concurrency + spare)
    if quota is not None and quota.rate:
        limit = min(limit, math.ceil(quota.rate * RATE_AHEAD + max(1.0, quota.burst or quota.rate)) + spare)
    return max(1, min(max(LEAST_CELL, limit), lane_items // max(1, sessions)))


def too_much(items: int, total: int) -> bool:
    """Whether a session with this many items out is beyond any credit it can have misunderstood."""
    return items > 2 * total
