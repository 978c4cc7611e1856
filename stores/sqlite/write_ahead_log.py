"""A write-ahead log that grows: it is written back and begun anew, or somebody is named who keeps it from that.

SQLite writes a log back while others read, but begins it anew only when nobody reads what is in it. So one reader that
forgot to end its transaction lets it grow for as long as it lives.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple


class HeldLog(NamedTuple):
    """Bytes that a log has, and the processes that have its database open beside this one, as far as is known."""

    size: int
    readers: tuple[str, ...]


def log_size(file: Path) -> int:
    """Bytes of a database's write-ahead log."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size
    except OSError:
        return 0


def watch(file: Path, most: int) -> HeldLog | None:
    """Begins the log of a database anew; who holds it, if it still has more than so many bytes. Takes a while."""
    with contextlib.suppress(sqlite3.Error):  # a busy or full disk: the size says so
        connection = sqlite3.connect(file, isolation_level=None, timeout=0.0)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.close()
    size = log_size(file)
    return HeldLog(size, readers(file)) if size > most else None


def readers(file: Path) -> tuple[str, ...]:
    """Other processes of this user that have the file open; nothing where the system does not tell."""
    wanted, found = str(file.resolve()), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.name != str(os.getpid()) and wanted in _open_in(process):
                found.append(f"{process.name} ({(process / 'comm').read_text().strip()})")
    return tuple(sorted(found))


def _open_in(process: Path) -> list[str]:
    found = []
    for each in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(each.readlink()))
    return found
