"""Drops in SQLite: a row per range."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from ...model.drop import Cause, Drop, DropRow
from ..sqlite.file import SqliteFile
from .drops import MOST
from .merge import fewer, join, joined

SCHEMA = """
CREATE TABLE IF NOT EXISTS drops (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    cause INTEGER NOT NULL,
    version INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    items INTEGER NOT NULL,
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (source, partition, cause, version, first)
) STRICT, WITHOUT ROWID;
"""

_COLUMNS = "first, last, items, cause, version, who, why, at"
_ORDER = "ORDER BY source, partition, first, cause, version"


class SqliteDrops:
    """Drops in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def add(self, source: str, partition: str, drops: Sequence[Drop], below: int) -> None:
        place = (source, partition)

        def put(connection: sqlite3.Connection) -> None:
            for drop in joined(drops):
                _put_one(connection, place, drop)
            (rows,) = connection.execute(
                "SELECT count(*) FROM drops WHERE source = ? AND partition = ?", place
            ).fetchone()
            if rows > 2 * MOST:
                _thin(connection, place, below)

        if drops:
            await self._file.write(put)

    async def within(self, source: str, partition: str, first: int, last: int) -> list[Drop]:
        def load(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(
                f"SELECT {_COLUMNS} FROM drops"
                f" WHERE source = ? AND partition = ? AND last >= ? AND first <= ? {_ORDER}",
                (source, partition, first, last),
            ).fetchall()

        return [_drop(row) for row in await self._file.read(load)]

    async def list(self, source: str, limit: int, skip: int = 0) -> list[DropRow]:
        def load(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(
                f"SELECT source, partition, {_COLUMNS} FROM drops"
                f" WHERE ?1 = '' OR source = ?1 {_ORDER} LIMIT ?2 OFFSET ?3",
                (source, limit, skip),
            ).fetchall()

        return [DropRow(own, partition, _drop(rest)) for own, partition, *rest in await self._file.read(load)]


def _put_one(connection: sqlite3.Connection, place: tuple[str, str], drop: Drop) -> None:
    near = connection.execute(
        f"SELECT {_COLUMNS} FROM drops WHERE source = ? AND partition = ? AND cause = ? AND version = ?"
        " AND last >= ? AND first <= ?",
        (*place, drop.cause, drop.version, drop.first - 1, drop.last + 1),
    ).fetchall()
    for row in near:
        drop = join(_drop(row), drop)
    _replace(connection, place, [_drop(row) for row in near], [drop])


def _thin(connection: sqlite3.Connection, place: tuple[str, str], below: int) -> None:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM drops WHERE source = ? AND partition = ? AND last < ?", (*place, below)
    ).fetchall()
    old = [_drop(row) for row in rows]
    _replace(connection, place, old, fewer(old, MOST))


def _replace(connection: sqlite3.Connection, place: tuple[str, str], old: list[Drop], new: list[Drop]) -> None:
    connection.executemany(
        "DELETE FROM drops WHERE source = ? AND partition = ? AND cause = ? AND version = ? AND first = ?",
        [(*place, drop.cause, drop.version, drop.first) for drop in old],
    )
    connection.executemany(
        f"INSERT INTO drops (source, partition, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*place, *drop) for drop in new],
    )


def _drop(row: Sequence[Any]) -> Drop:
    first, last, items, cause, *rest = row
    return Drop(first, last, items, Cause(cause), *rest)
