"""Objects that are given up as unreadable: each is tried again after another one showed that the store answers. Before
that nobody knows whether the object is to blame or the store.

After that an object that is refused (its own key, an archive, another account's) is unreadable. Any other error, such
as one of the store's own, may pass: it has to last.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

#: Seconds for which an object that is not refused, and yet cannot be read, is tried.
LASTS = 300.0
#: Objects that are remembered as failing.
MOST = 1000


class ReadVerdict(enum.Enum):
    """UNKNOWN: nothing was read since; LATER: it is to be tried again; UNREADABLE: it is given up."""

    UNKNOWN = 0
    LATER = 1
    UNREADABLE = 2


class _Failing(NamedTuple):
    since: float
    first: int


class Unreadable:
    """Objects that were read and that were not, in their order. Invariants: `read_last` is the last one that was read,
    and `_answered` its turn; one that was read is not among `_failing`."""

    def __init__(self) -> None:
        self._turn = self._answered = 0
        self._failing: dict[str, _Failing] = {}
        self.read_last = ""

    def answered(self, key: str) -> None:
        """Notes that an object was read."""
        self._turn += 1
        self._answered, self.read_last = self._turn, key
        self._failing.pop(key, None)

    def failed(self, key: str, refused: bool, now: float) -> ReadVerdict:
        """Notes that an object could not be read at `now`, in monotonic seconds, and says what follows."""
        self._turn += 1
        before = self._failing.pop(key, None) or _Failing(now, self._turn)
        proven = before.first < self._answered
        if proven and (refused or now - before.since >= LASTS):
            return ReadVerdict.UNREADABLE
        if len(self._failing) >= MOST:
            del self._failing[next(iter(self._failing))]
        self._failing[key] = before
        return ReadVerdict.LATER if proven else ReadVerdict.UNKNOWN
