"""Errors that say that a server refused something of itself and kept nothing of it: whoever shared the write may go on
without it."""

from __future__ import annotations

import struct

from ..model.errors import NotConnected, UserError


class Refused(NotConnected):
    """The server ran the write and would not have what it said: a number beyond its bounds, a sign that it cannot
    keep. For everybody else it is NotConnected, since what is refused today another version may take."""


class UnsaidValue(Refused):
    """A value has no place in what was asked (PostgreSQL's SQLSTATEs 22…): a text that is none in the encoding of the
    connection, a character that the database does not have, a number beyond its type."""


#: What making or sending a request raises before anybody has it.
_NEVER_SENT = ValueError | TypeError | OverflowError | struct.error


def nothing_was_kept(error: Exception) -> bool:
    """Whether the write that raised this left nothing, so that its parts may be written again. Of a connection that
    broke, or a store that is full, that is not known or of no use."""
    return isinstance(error, Refused | UserError | _NEVER_SENT)
