"""Back-off (exponential): the wait before something that failed is tried again, a first pause, doubled after each
further failure up to a cap, with chance in it (jitter.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .jitter import jittered

#: Doublings after which any cap is reached; more would not fit into a float.
_MOST = 60


class Pauses(NamedTuple):
    """The numbers of one back-off, seconds: the pause after a lone failure, and the cap that it doubles to."""

    first: float
    last: float

    def within(self, heartbeat: float) -> Pauses:
        """Returns these pauses with a cap of about a heartbeat, so that a holder of a lease is heard again, once it can
        be, before that lease is over."""
        return self._replace(last=max(self.first, min(self.last, heartbeat)))


#: A store fails, or a process of the platform; it is asked, or started, again.
STORE = Pauses(0.1, 5.0)
#: A connection of a session breaks; it is dialled again.
CONNECTION = Pauses(0.02, 1.0)
#: A call to a gateway has no answer.
CALL = Pauses(0.05, 1.0)
#: The delay service cannot be reached; items wait in their tailer meanwhile.
PARK = Pauses(0.05, 2.0)
#: A gateway's store is away; submissions go to its spool meanwhile.
SPOOL = Pauses(0.1, 2.0)
#: A source is not connected; it is opened again.
SOURCE = Pauses(0.1, 10.0)
#: A tailer, or the pump of a partition, failed; it begins again.
TAILER = Pauses(0.5, 30.0)
#: … with what somebody must mend by hand: then a look whether that was done.
MENDED = Pauses(1.0, 60.0)
#: An item comes back unstarted time and again; it goes out again.
HAND_BACK = Pauses(0.1, 5.0)
#: An outbox's database or its queue cannot be reached.
OUTBOX = Pauses(0.1, 2.0)
#: A part fails beyond its own handling; it is closed and opened again.
PART = Pauses(0.1, 30.0)
#: A sweep of a store fails: nobody waits for it.
SWEEP = Pauses(5.0, 60.0)
#: A process that was told to end has not been reaped.
REAP = Pauses(0.005, 0.1)
#: An operator's order has not been answered.
ANSWER = Pauses(0.01, 0.25)


def doubled(first: float, last: float, times: int) -> float:
    """The pause `first` after `times` doublings (none or more), `last` at most."""
    return min(last, first * 2.0 ** min(times, _MOST))


class Backoff:
    """The pauses of one thing that may fail, seconds. `chance` returns a number in [0, 1) and spreads each pause around
    its length; without it there is none.

    Invariant: `_next` is the pause after the next failure, before it is spread.
    """

    __slots__ = ("_chance", "_first", "_last", "_next")

    def __init__(self, first: float, last: float, chance: Callable[[], float] | None = None) -> None:
        self._first = self._next = first
        self._last = last
        self._chance = chance

    def pause(self) -> float:
        """Counts one more failure and returns the seconds to wait now."""
        pause, self._next = self._next, doubled(self._next, self._last, 1)
        return jittered(pause, self._chance)

    def reset(self) -> None:
        """Starts over after a success: the next failure is answered with the first pause."""
        self._next = self._first
