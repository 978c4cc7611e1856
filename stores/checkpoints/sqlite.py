"""Checkpoints in SQLite: a row per source with its epoch, a row per partition with its mark.

What was handed out and the books are in tables of their own, and `clean` and `lease` are written without a meaning, so
that a file of version 0.1 needs no change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from ...sdk.model.errors import StaleFence
from ..sqlite import SqliteFile
from .checkpoints import Mark

SCHEMA = """
CREATE TABLE IF NOT EXISTS checkpoint_sources (
    source TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    clean INTEGER NOT NULL,
    lease REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint_marks (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    position INTEGER NOT NULL,
    ahead BLOB NOT NULL,
    PRIMARY KEY (source, partition)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint_handed_out (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    handed_out INTEGER NOT NULL,
    PRIMARY KEY (source, partition)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint_books (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    book BLOB NOT NULL,
    PRIMARY KEY (source, partition)
) STRICT, WITHOUT ROWID;
"""


class SqliteCheckpoints:
    """Checkpoints in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def open(self, source: str, epoch: int) -> dict[str, Mark]:
        def note(connection: sqlite3.Connection) -> dict[str, Mark]:
            newest = _epoch(connection, source)
            if newest is not None and newest > epoch:
                raise _stale(source, epoch, newest)
            if newest != epoch:
                connection.execute("INSERT OR REPLACE INTO checkpoint_sources VALUES (?, ?, 0, 0)", (source, epoch))
            return _marks(connection, source)

        return await self._file.write(note)

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        def move(connection: sqlite3.Connection) -> None:
            newest = _epoch(connection, source)
            if newest != epoch:
                raise _stale(source, epoch, newest)
            for partition, mark in marks.items():
                connection.execute(
                    "INSERT INTO checkpoint_marks VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (source, partition) DO UPDATE SET position = excluded.position,"
                    " ahead = excluded.ahead WHERE excluded.position >= position",
                    (source, partition, mark.position, mark.ahead),
                )
                connection.execute(
                    "INSERT OR REPLACE INTO checkpoint_books SELECT source, partition, ? FROM checkpoint_marks"
                    " WHERE source = ? AND partition = ? AND position = ?",
                    (mark.book, source, partition, mark.position),
                )
                if mark.handed_out:
                    connection.execute(
                        "INSERT INTO checkpoint_handed_out VALUES (?, ?, ?)"
                        " ON CONFLICT (source, partition) DO UPDATE SET handed_out = excluded.handed_out"
                        " WHERE excluded.handed_out > handed_out",
                        (source, partition, mark.handed_out),
                    )

        await self._file.write(move)

    async def load(self, source: str) -> dict[str, Mark]:
        return await self._file.read(lambda connection: _marks(connection, source))


def _marks(connection: sqlite3.Connection, source: str) -> dict[str, Mark]:
    rows = connection.execute(
        "SELECT partition, position, ahead, coalesce(handed_out, 0), coalesce(book, x'') FROM checkpoint_marks"
        " LEFT JOIN checkpoint_handed_out USING (source, partition)"
        " LEFT JOIN checkpoint_books USING (source, partition) WHERE source = ?",
        (source,),
    ).fetchall()
    return {partition: Mark(*mark) for partition, *mark in rows}


def _epoch(connection: sqlite3.Connection, source: str) -> int | None:
    row = connection.execute("SELECT epoch FROM checkpoint_sources WHERE source = ?", (source,)).fetchone()
    return None if row is None else int(row[0])


def _stale(source: str, epoch: int, newest: int | None) -> StaleFence:
    return StaleFence(f"source {source!r}: epoch {epoch} is over (the newest is {newest}); nothing was written")
