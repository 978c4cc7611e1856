"""A write-ahead log that grows: it is written back and started again, or the processes are named that prevent this.

SQLite writes a log back while others read, but starts it again only when no reader needs it. So a reader that forgot to
end its transaction lets the log grow for as long as it lives.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple


class HeldLog(NamedTuple):
    """The bytes of a log, and the other processes that have its database open, as far as is known."""

    size: int
    readers: tuple[str, ...]


def log_size(file: Path) -> int:
    """Bytes of a database's write-ahead log."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size
    except OSError:
        return 0


def watch(file: Path, most: int) -> HeldLog | None:
    """Starts the log of a database again. If it still has more than `most` bytes, returns its size and who may hold it.
    Takes a while."""
    with contextlib.suppress(sqlite3.Error):  # a busy file or a full disk: the size shows it
        connection = sqlite3.connect(file, isolation_level=None, timeout=0.0)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.close()
    size = log_size(file)
    return HeldLog(size, readers(file)) if size > most else None


def readers(file: Path) -> tuple[str, ...]:
    """Other processes of this user that have the file open; empty where the system does not tell."""
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
