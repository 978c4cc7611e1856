"""Moving a stream's checkpoint by hand: where to, and what that passes without running it."""

from __future__ import annotations

from typing import NamedTuple

#: Edges of what a source has.
START, END = "start", "end"


class Seek(NamedTuple):
    """What an operator wants: to a `position`, else an `edge`, else the first item from `time` (wall clock seconds) on.

    partition  None: every one; a position needs one when there are several
    who, why   noted with what is dropped
    """

    tailer: str
    position: int | None = None
    edge: str = ""
    time: float = 0.0
    partition: str | None = None
    who: str = ""
    why: str = ""
    dry_run: bool = False


class Move(NamedTuple):
    """Of one partition: from its checkpoint to where, and how many positions between are dropped by that; the others
    had ended, or are in the delay service."""

    partition: str
    before: int
    after: int
    dropped: int
