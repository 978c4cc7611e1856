"""Clog, a circuit breaker: how a tailer settles items of a function that the scheduler found broken (law 7).

While a function is clogged, a failure says nothing of the item that failed: it spends no attempt and is not parked. A
stream's item stays where it is, held by position; a queue's goes back for a while. Both are tried again as probes, one
at a time. So an outage, however long it lasts, copies into the delay service only items that failed *before* the
scheduler saw it. `on_outage: park` has none of this: that tailer's items run and fail as always.

                       queue               stream, ordered
    retry              return after 30 s   hold
    … exhausted        the same            hold
    … that it asked for  as always         hold until then, never parked
    fatal              dead letter         dead letter: the function said never again
    throttled          as always           hold until then, never parked
    … crashes (lost)   return after 30 s   hold
"""

from __future__ import annotations

from enum import StrEnum

from ...model.outcome import Outcome
from ...model.workload import Ended
from .settlement import Action, Family, History, Settlement

#: Seconds for which a queue's item that failed as the probe lets others have their turn.
QUEUE_WAIT = 30.0
#: A clogged tailer reads new items only while fewer than this are held: enough that one poisoned item among them is
#: never the only probe, few enough to keep nothing in memory.
AT_HAND = 8


class OnOutage(StrEnum):
    """Values of `on_outage` in a tailer's file."""

    CLOG = "clog"
    PARK = "park"


def settle_in_outage(settlement: Settlement, ended: Ended, family: Family, history: History) -> Settlement:
    """The settlement of an item whose function is clogged, by the `settlement` that it would have otherwise."""
    wait = Action.RETURN if family is Family.QUEUE else Action.HOLD
    delay = QUEUE_WAIT if family is Family.QUEUE else 0.0
    match ended.outcome:
        case Outcome.RETRY if ended.asked:
            return settlement if settlement.action is Action.DEAD else settlement._replace(action=wait)
        case Outcome.RETRY:
            return Settlement(wait, delay, history.attempt - 1, history.crashes, history.throttles, ended.reason)
        case Outcome.LOST if settlement.action is Action.DEAD:
            return settlement._replace(action=wait, delay=delay, reason=ended.reason)
        case Outcome.THROTTLED:
            return settlement._replace(action=wait)
    return settlement


def may_read(held: int) -> bool:
    """Whether a tailer of one clogged function reads on while so many items are held."""
    return held < AT_HAND
