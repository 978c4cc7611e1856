"""Errors of a server that refused a write and kept nothing of it: other writes that shared a transaction with it may go
on without it."""

from __future__ import annotations

import struct

from ..model.errors import NotConnected, UserError


class Refused(NotConnected):
    """The server ran the write and refused a value: a number beyond its bounds, a character that it cannot keep. It is
    a NotConnected for all other code, since another version of the server may accept the value."""


class UnsaidValue(Refused):
    """A value cannot be expressed in the request (PostgreSQL's SQLSTATEs 22…): a text that is invalid in the encoding
    of the connection, a character that the database does not have, a number beyond its type."""


#: Errors of making or sending a request, before a server has it.
_NEVER_SENT = ValueError | TypeError | OverflowError | struct.error


def nothing_was_kept(error: Exception) -> bool:
    """Whether the write that raised this error left nothing, so that its parts may be written again. For a broken
    connection that is unknown, and for a full store another try is of no use: False."""
    return isinstance(error, Refused | UserError | _NEVER_SENT)
