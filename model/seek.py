"""Moving a stream's checkpoint by hand: the place to move to, and the positions that it passes without running them."""

from __future__ import annotations

from typing import NamedTuple

from .errors import InvalidRequest
from .units import moment_of

#: Edges of what a source has.
START, END = "start", "end"
#: The highest position; those of sources whose ids hold a time have nineteen digits.
LAST_POSITION = (1 << 63) - 1


class Where(NamedTuple):
    """A place in a stream, as people say it: a `position`, else an `edge`, else the first item from `time` (wall clock
    seconds) on."""

    position: int | None = None
    edge: str = ""
    time: float = 0.0


def where(option: str, text: str, now: float) -> Where:
    """Reads a place in a stream from text: a position, "start", "end", how long before `now`, or a time. Raises
    InvalidRequest that names the option."""
    if text in (START, END):
        return Where(edge=text)
    if text.isascii() and text.isdecimal():
        if int(text[:20]) > LAST_POSITION:
            raise InvalidRequest(f"{option} is {text[:30]}: no position is above {LAST_POSITION}")
        return Where(position=int(text))
    if not text:
        raise InvalidRequest(f'{option} is empty: expected a position, a time, "{START}" or "{END}"')
    try:
        return Where(time=moment_of(option, text, now))
    except InvalidRequest:
        raise InvalidRequest(
            f'{option} is {text!r:.60}: expected a position, "{START}", "{END}", how long ago, such as "90m", or a '
            'time such as "2026-05-01T12:00"'
        ) from None


class Seek(NamedTuple):
    """The order of an operator: to a `position`, else an `edge`, else the first item from `time` (wall clock seconds)
    on.

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


class ForgetTailer(NamedTuple):
    """The order of an operator that a tailer does not come back. `who` and `why` are recorded."""

    tailer: str
    who: str = ""
    why: str = ""


class Move(NamedTuple):
    """A checkpoint's move in one partition: the position before and after, and the number of positions between that are
    dropped by it; the others had ended, or are in the delay service."""

    partition: str
    before: int
    after: int
    dropped: int
