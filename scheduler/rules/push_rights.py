"""Rights of a tailer that is given less than its role may: which kinds it may push, and what is closed to it so that it
keeps the rest in its source.

Each kind is asked about once, where the session names it; no item is. Of a function on which the tailer has no right at
all it is told as of a gate. Of one that it may push for some tenants only it has to know itself which: the others are
refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...model.demand import Closed
from ...model.errors import InvalidRequest
from ...model.grants import GrantedRights
from ...model.rights import Need, missing, sentence
from ...model.token_calls import need_of

#: The right that a tailer needs for every push.
PUSH = "submit"


class PushRights:
    """The rights of one session. Invariant: `closed` has each function that it heard of and may push nothing of."""

    def __init__(self, granted: GrantedRights) -> None:
        self.closed: frozenset[Closed] = frozenset()
        self._granted = granted
        self._heard: set[str] = set()

    def check(self, kinds: Iterable[Any]) -> None:
        """Raises InvalidRequest for the first kind that may not be pushed."""
        if (need := missing(self._granted.rights, (need_of(PUSH, kind) for kind in kinds))) is not None:
            raise InvalidRequest(sentence(*self._granted, need))

    def hears(self, functions: Iterable[str]) -> bool:
        """Takes functions that the session hears of. Returns whether more is closed to it than before."""
        fresh = set(functions) - self._heard
        self._heard |= fresh
        refused = [name for name in fresh if not self._granted.may_some(PUSH, name)]
        self.closed |= {Closed(name, reason=sentence(*self._granted, Need(PUSH, name))) for name in refused}
        return bool(refused)
