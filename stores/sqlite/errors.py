"""SQLite's errors, translated into errors of our own with the file and what to do."""

from __future__ import annotations

import sqlite3

from ...model.errors import StoreFull, TailraceError, Unavailable

#: A write that finds no room may also end as a plain input/output error.
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
#: Errors about a row; all others are about the file. None: Python's own error for a text that is not valid.
_OF_A_ROW = {None, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}


def explained(error: Exception, store: str) -> Exception:
    """Returns the error to raise instead. `store` names the store and its file. Errors that need no other words are
    returned as they are."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return error
    code &= 0xFF  # the low byte is the kind, the rest its details
    text = f"{store}: {error}"
    if code in _FULL:
        return StoreFull(f"{text}. Free some space; nothing of this write was kept")
    if code in _UNWRITABLE:
        return TailraceError(f"{text}. The folder must exist and be writable by this user")
    if code in _DAMAGED:
        return TailraceError(
            f"{text}. The file is damaged or is no tailrace store: stop what runs on it, and put a backup back "
            "(`tailrace store restore`, into an empty directory). Keep the damaged file: the `.recover` of the "
            "`sqlite3` program may still read some of it"
        )
    if code == sqlite3.SQLITE_BUSY:
        return Unavailable(
            f"{text}: another process writes this file. Keep its transactions short; this write may be repeated"
        )
    return error


def is_of_a_row(error: Exception) -> bool:
    """Whether a statement failed because of a row's values, so that it may succeed without that row."""
    if not isinstance(error, sqlite3.Error):
        return not isinstance(error, Unavailable)
    code = getattr(error, "sqlite_errorcode", None)
    return (code if code is None else code & 0xFF) in _OF_A_ROW
