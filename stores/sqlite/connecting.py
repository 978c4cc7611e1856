"""The connections of a SQLite file: one that writes, and one that only reads.

Connections are opened in a thread, which cannot be cancelled. A caller that is cancelled meanwhile waits until the file
is open, and it is closed again: a forgotten connection would keep the file, and its write-ahead log, from the next
caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from .errors import explained

#: Pages of the write-ahead log (8 MB) until it is written back and started again from its beginning. A sync of a part
#: that was used before need not wait for the file system to note a larger file: a fifth of a lone commit's time (ext4).
LOG_PAGES = 2000
#: Seconds for which a write waits for another process that writes the same file, before it is refused.
BUSY = 5.0


def closed_mark(mark: int) -> int:
    """The mark of a file whose run, which gave it this one, closed it in order: marks of runs are odd, these even."""
    return mark & ~1


def write_back(connection: sqlite3.Connection) -> bool:
    """Writes the log back into the file as far as no reader needs it, and waits for none: a replicator beside us reads
    for as long as it runs. Returns whether all of it is there, and the log begun anew."""
    connection.execute("PRAGMA busy_timeout=0")
    try:
        (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout={BUSY * 1000:.0f}")
    return not busy


@dataclass(frozen=True, slots=True)
class Connections:
    """Both connections. `bears_mark`: the mark is in the file's own header, because no reader of old pages of the
    write-ahead log kept it out."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection
    bears_mark: bool

    def close(self) -> None:
        """Closes both."""
        self.writer.close()
        self.reader.close()


@dataclass(frozen=True, slots=True)
class Connecting:
    """Parameters to open a file. `schema` is a script that makes missing tables; `synchronous` is FULL or NORMAL;
    `what` names the file in errors. A `mark` other than 0 is written to the file (see restored.py)."""

    path: Path
    schema: str
    synchronous: str
    what: str
    mark: int

    async def both(self) -> Connections:
        """Opens both connections, in another thread. Raises StoreFull, or TailraceError with what to do."""
        connecting = asyncio.ensure_future(asyncio.to_thread(self._both))
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_close)
            await asyncio.wait([connecting])
            raise

    def _both(self) -> Connections:
        writer, bears_mark = self._connect_and_mark()
        try:
            reader = self._connect()
        except BaseException:
            writer.close()
            raise
        reader.execute("PRAGMA query_only=1")
        return Connections(writer, reader, bears_mark)

    def _connect_and_mark(self) -> tuple[sqlite3.Connection, bool]:
        with contextlib.suppress(OSError):  # it exists already, or SQLite tells better why it cannot be made
            self.path.touch(mode=0o600, exist_ok=False)  # whatever the umask: a later change looks like a restore
        connection, bears_mark = self._connect(), False
        try:
            if self.mark:
                connection.execute(f"PRAGMA user_version={self.mark}")
                # the mark has to be in the file itself, not only in its write-ahead log
                bears_mark = write_back(connection)
        except sqlite3.Error as error:
            connection.close()
            raise explained(error, self.what) from None
        return connection, bears_mark

    def _connect(self) -> sqlite3.Connection:
        connection = None
        try:
            connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=BUSY
            )
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={self.synchronous}")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute("PRAGMA cache_size=-16384")
            connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
            connection.executescript(self.schema)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise explained(error, self.what) from None
        return connection


def _close(connecting: asyncio.Future[Connections]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()
