"""A row of the ledger: what is known of one stream item that failed or is suspected (L14 to L20).

Healthy items have none. The protocol and its engines are in `stores/ledger`; the rule of a tailer for a row is in
`tailers/rules/ledger.py`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from .tries import Try


class LedgerPlace(IntEnum):
    """The places of an item. One whose row is anything but SUSPECT is never run from its source (L15). DONE and DEAD
    are terminal: the row goes once the checkpoint has passed it (L20)."""

    SUSPECT = 1  # ran when its tailer or its process died; a mark that bars nothing (L14)
    PARKING = 2  # about to be appended to the delay service; whoever finds this appends it again (L15)
    PARKED = 3  # in the delay service
    RUNNING = 4  # its copy was started
    DONE = 5
    DEAD = 6

    @property
    def label(self) -> str:
        """The name users see."""
        return self.name.lower()


#: Due time of a row whose item is detached (the end of the year 9999): no copy starts before its owner says when.
NOT_YET = 253_402_300_799.0

TERMINAL = frozenset((LedgerPlace.DONE, LedgerPlace.DEAD))


class LedgerEntry(NamedTuple):
    """One row. `position` is the item's in its source; times are wall clock seconds.

    n           how often it was parked; a copy in the delay service carries its own
    due         when it may start; NOT_YET: it is detached, which is a PARKING of its own
    attempts    attempts that failed; `crashes` and `throttles` are counted apart from them
    fence       of its last hand-out, below which no later one may go (L19)
    epoch       of the due partition that runs it, while RUNNING (L17); before that, the one that its next must be above
    first_seen  when it was first handed out
    tries       how its attempts went, the last ones
    """

    position: int
    place: LedgerPlace
    n: int = 0
    due: float = 0.0
    attempts: int = 0
    crashes: int = 0
    throttles: int = 0
    fence: int = 0
    epoch: int = 0
    first_seen: float = 0.0
    tries: tuple[Try, ...] = ()

    @property
    def is_detached(self) -> bool:
        """Whether the item runs where its source's owner handed it out, and the frontier passed it, or is about to.
        What keeps it meanwhile is a copy in the delay service, which starts only once the row is due."""
        return self.place is LedgerPlace.PARKING and self.due >= NOT_YET
