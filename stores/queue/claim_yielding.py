"""Yielding of claims: THE rule of when claims of less urgent work pause, while somebody submits more urgent work, a few
items at a time.

The submitter of a lone item waits behind everything that claims of less urgent items set in motion: hand-outs,
settlements and what follows from them. With two busy processors that is four times the item's own way. So such a claim
starts only once the process has used less than its share of a processor since the last one. A lone item then mostly
finds the process idle: as in any queue, waiting time grows with 1 / (1 - utilisation). A pause is bounded, so that less
urgent work gets on however busy the process is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .claim_sizes import SOON

#: Most items of a submission that counts as a few. More items come by large claims, which share by priority anyway.
FEW = 64
#: The longest pause, seconds. 64 items after each pause are some 600 a second: more than the 5 % that are guaranteed to
#: lower priorities, beside as many lone submissions as one process can take.
LONGEST = 0.1


class ClaimYield(NamedTuple):
    """A pause that a claim makes: it takes nothing less urgent than this priority, for so many seconds."""

    urgent: int
    seconds: float


class ClaimYielding:
    """The submissions and claims of one process. `share`: the part of a processor that the process may be busy with; 1:
    no pauses. `now` is seconds of one clock. `processor` returns the processor seconds that this process has used."""

    def __init__(self, share: float = 1.0) -> None:
        self._share = share
        self._submitted: dict[int, float] = {}  # priority → when a few items of it were submitted last
        self._at = self._used = 0.0  # time and processor seconds at the last claim that took less urgent work

    def submitted(self, priorities: Iterable[int], items: int, now: float) -> None:
        """Notes that so many items of these priorities were submitted together."""
        if self._share < 1 and items <= FEW:
            for priority in priorities:
                self._submitted[priority] = now

    def pause(self, priorities: Iterable[int], now: float, processor: Callable[[], float]) -> ClaimYield | None:
        """Returns the pause that a claim has to make if it may take these priorities. None: no pause; a claim that may
        take less urgent work then counts as the last one."""
        if not self._submitted:
            return None
        # After the clock was set back, older times do not tell whether another submission is likely.
        self._submitted = {each: at for each, at in self._submitted.items() if 0 <= now - at < SOON}
        urgent = min(self._submitted, default=None)
        if urgent is None or all(each <= urgent for each in priorities):
            return None
        used = processor()
        seconds = self._at + min((used - self._used) / self._share, LONGEST) - now
        if 0 < seconds <= LONGEST:
            return ClaimYield(urgent, seconds)
        self._at, self._used = now, used
        return None
