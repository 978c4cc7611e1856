"""Checkpoints in SQLite: a row per source with its epoch, a row per partition with its mark."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from ...sdk.model.errors import StaleFence
from ..sqlite import SqliteFile
from .checkpoints import Mark, Opened

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
"""


class SqliteCheckpoints:
    """Checkpoints in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def open(self, source: str, lease: float) -> Opened:
        def take(connection: sqlite3.Connection) -> Opened:
            row = connection.execute(
                "SELECT epoch, clean, lease FROM checkpoint_sources WHERE source = ?", (source,)
            ).fetchone()
            epoch, clean, former = row or (0, 1, 0.0)
            connection.execute(
                "INSERT INTO checkpoint_sources VALUES (?, ?, 0, ?)"
                " ON CONFLICT (source) DO UPDATE SET epoch = excluded.epoch, clean = 0, lease = excluded.lease",
                (source, epoch + 1, lease),
            )
            return Opened(epoch + 1, bool(clean), former, _marks(connection, source))

        return await self._file.write(take)

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        def move(connection: sqlite3.Connection) -> None:
            _check_epoch(connection, source, epoch)
            for partition, mark in marks.items():
                connection.execute(
                    "INSERT INTO checkpoint_marks VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (source, partition) DO UPDATE SET position = excluded.position,"
                    " ahead = excluded.ahead WHERE excluded.position >= position",
                    (source, partition, mark.position, mark.ahead),
                )

        await self._file.write(move)

    async def release(self, source: str, epoch: int) -> None:
        def note(connection: sqlite3.Connection) -> None:
            _check_epoch(connection, source, epoch)
            connection.execute("UPDATE checkpoint_sources SET clean = 1 WHERE source = ?", (source,))

        await self._file.write(note)

    async def load(self, source: str) -> dict[str, Mark]:
        return await self._file.read(lambda connection: _marks(connection, source))


def _marks(connection: sqlite3.Connection, source: str) -> dict[str, Mark]:
    rows = connection.execute(
        "SELECT partition, position, ahead FROM checkpoint_marks WHERE source = ?", (source,)
    ).fetchall()
    return {partition: Mark(position, ahead) for partition, position, ahead in rows}


def _check_epoch(connection: sqlite3.Connection, source: str, epoch: int) -> None:
    row = connection.execute("SELECT epoch FROM checkpoint_sources WHERE source = ?", (source,)).fetchone()
    if row is None or row[0] != epoch:
        newest = row[0] if row else "none"
        raise StaleFence(f"source {source!r}: epoch {epoch} is over (the newest is {newest}); nothing was written")
