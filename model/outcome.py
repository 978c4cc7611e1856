"""Outcomes: how a workload can end, a closed set. The numbers are the ones on the wire and never change meaning."""

from __future__ import annotations

from enum import IntEnum


class Outcome(IntEnum):
    """One hand-out's end. `held` is no outcome (nothing started), but travels the same way, hence its number."""

    SUCCESS = 1  # the function returned
    RETRY = 2  # the function failed, or asked for another try: spends an attempt
    FATAL = 3  # the function said never again, or its payload cannot fit: dead letter
    THROTTLED = 4  # a downstream or a limit said wait: spends no attempt
    LOST = 5  # the execution's end is unknown (its process died or its lease ended): no attempt, perhaps a crash count
    DROPPED = 6  # an operator's gate dropped it
    EXPIRED = 7  # see EXPIRED_WHY
    CANCELLED = 8  # its owner cancelled it
    HELD = 9  # never started and handed back: gated, no room, drained. Not an outcome; costs nothing


#: The reason kept with a workload that expired, for people.
EXPIRED_WHY = "its deadline passed before it started"
#: After these the workload is over, whatever its source.
TERMINAL = frozenset({Outcome.SUCCESS, Outcome.FATAL, Outcome.DROPPED, Outcome.EXPIRED, Outcome.CANCELLED})
