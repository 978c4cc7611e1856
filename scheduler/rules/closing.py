"""Closing: the blocked flows that tailers should push no more of for now, and when they may again (FL10, FL11).

A flow that a limit keeps waiting must fill nothing that others need. So where more of it waits than its limits let
start within a while, it keeps that much, the rest goes back to its source, and its kind is closed at its rank: exactly
that kind, never a coarser one, which would stop the innocent. It is opened again when half of what it kept has started,
or after a while without any reason.
"""

from __future__ import annotations

from .estimate import usual
from .flow import Flow
from .limit import UNLIMITED

#: Items of a flow that wait here whatever its limits: a batch must be worth its message.
LEAST = 16
#: Multiples of a concurrency limit, and seconds of a rate, that wait here.
CONCURRENCY_AHEAD, RATE_AHEAD = 4, 2.0
#: Seconds after which a closed flow is opened to see whether closing it is still right.
LOOK_AGAIN = 10.0
#: Closed flows at once, at most; what does not fit stays open. A tailer brings more of that as fast as it goes back, so
#: between two looks no more than so many items do: enough that others find credit, and not a write for each of a
#: backlog of millions.
MOST_CLOSED = 1_000
MOST_UNCLOSED_BACK = 128


def kept(flow: Flow) -> int:
    """Number of items of a flow that are worth waiting here."""
    most = UNLIMITED
    for limit in flow.charges:
        if limit.concurrency < UNLIMITED:
            most = min(most, CONCURRENCY_AHEAD * limit.concurrency)
        if limit.rate:
            most = min(most, int(limit.rate * RATE_AHEAD + limit.burst))
    if flow.measured:
        for unit, amount in zip(flow.measured, usual(flow), strict=True):
            if amount > 0:
                most = min(most, int((unit.rate * RATE_AHEAD + unit.burst) / amount))
    return max(LEAST, most)


def closes(flow: Flow, reach: int) -> bool:
    """Whether a blocked flow has too much here; `reach` is what `kept` said."""
    return not flow.closed and flow.asleep is not None and len(flow.items) > 2 * reach


def opens(flow: Flow, reach: int, now: float) -> bool:
    """Whether a closed flow may be pushed again. What names a closed downstream is looked at when that opens."""
    if len(flow.items) <= reach // 2:
        return True
    return now - flow.closed >= LOOK_AGAIN and not any(limit.shut for limit in flow.charges)
