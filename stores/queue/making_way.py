"""Making way: THE rule of when claims of what is less urgent rest, while somebody submits what is more urgent, a few
items at a time.

Who submits a lone item waits behind all that claims of less urgent items set in motion: hand-outs, settlements, what is
made of them. Where two processors have nothing idle, that is four times the item's own way. So meanwhile such a claim
begins only when the process has used less than its share of a processor since the last one, and a lone item finds it
idle more often than not: waits in line grow with 1 / (1 - utilisation), as of any queue. A rest is bounded, so that
what is less urgent gets on however busy the process is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .claims_beside import SOON

#: Items of one submission that are lone ones. More are work for claims of many items, and share those by priorities.
FEW = 64
#: Seconds: the longest rest. 64 items in each are some 600 a second: more than the share that lower priorities are sure
#: of, 5 %, beside any lone submissions that one process can take.
LONGEST = 0.1


class MadeWay(NamedTuple):
    """Way that a claim makes: it takes nothing less urgent than this priority, for so many seconds."""

    urgent: int
    rest: float


class MakingWay:
    """The submissions and claims of one process. `share`: the part of a processor that it may be busy with; 1: nothing
    rests. `now` is seconds of one clock; `processor` tells what this process used of processors, seconds."""

    def __init__(self, share: float = 1.0) -> None:
        self._share = share
        self._submitted: dict[int, float] = {}  # priority → when a few items of it were submitted last
        self._at = self._used = 0.0  # of the last claim that took what is less urgent

    def submitted(self, priorities: Iterable[int], items: int, now: float) -> None:
        """So many items of these priorities were submitted together."""
        if self._share < 1 and items <= FEW:
            for priority in priorities:
                self._submitted[priority] = now

    def made(self, priorities: Iterable[int], now: float, processor: Callable[[], float]) -> MadeWay | None:
        """What a claim that may take these priorities leaves; None: nothing, and it counts as the last one where it may
        take what is less urgent."""
        if not self._submitted:
            return None
        # A clock that was set back says nothing of what comes soon.
        self._submitted = {each: at for each, at in self._submitted.items() if 0 <= now - at < SOON}
        urgent = min(self._submitted, default=None)
        if urgent is None or all(each <= urgent for each in priorities):
            return None
        used = processor()
        rest = self._at + min((used - self._used) / self._share, LONGEST) - now
        if 0 < rest <= LONGEST:
            return MadeWay(urgent, rest)
        self._at, self._used = now, used
        return None
