"""The inventory in SQLite: one narrow row per name and version; positions are dense within a source."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from ...model.errors import InvalidRequest
from ..sqlite.file import SqliteFile
from .inventory import Entries, InventoryEntry

SCHEMA = """
CREATE TABLE IF NOT EXISTS inventory (
    source TEXT NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (source, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS inventory_floors (
    source TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS inventory_entries ON inventory (source, name, version);
"""


class SqliteInventory:
    """An Inventory in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def offer(self, source: str, entries: Sequence[InventoryEntry]) -> int:
        text = json.dumps([[entry.name, entry.version] for entry in dict.fromkeys(entries)], ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"source {source!r}: an entry's name or version is not UTF-8 text, near "
                f"{text[max(0, error.start - 40) : error.end]!a}; rename it"
            ) from None

        def add(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "INSERT INTO inventory (source, position, name, version)"
                " SELECT ?1, (SELECT coalesce(max(position) + 1, 0) FROM inventory WHERE source = ?1)"
                "  + row_number() OVER (ORDER BY offered.key) - 1, offered.value ->> 0, offered.value ->> 1"
                " FROM json_each(?2) AS offered"
                " WHERE NOT EXISTS (SELECT 1 FROM inventory WHERE source = ?1"
                "  AND name = offered.value ->> 0 AND version = offered.value ->> 1)",
                (source, text),
            ).rowcount

        return await self._file.write(add) if entries else 0

    async def read(self, source: str, position: int, limit: int) -> Entries:
        def load(connection: sqlite3.Connection) -> Entries:
            rows = connection.execute(
                "SELECT position, name, version FROM inventory WHERE source = ? AND position >= ?"
                " ORDER BY position LIMIT ?",
                (source, position, limit),
            ).fetchall()
            return Entries([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])

        return await self._file.read(load)

    async def end(self, source: str) -> int:
        def load(connection: sqlite3.Connection) -> int:
            (end,) = connection.execute(
                "SELECT coalesce(max(position) + 1, 0) FROM inventory WHERE source = ?", (source,)
            ).fetchone()
            return int(end)

        return await self._file.read(load)

    async def forget(self, source: str) -> None:
        def drop(connection: sqlite3.Connection) -> None:
            for table in ("inventory", "inventory_floors"):
                connection.execute(f"DELETE FROM {table} WHERE source = ?", (source,))

        await self._file.write(drop)

    async def floor(self, source: str) -> str:
        return await self._file.read(lambda connection: _floor(connection, source))

    async def raise_floor(self, source: str, overlap: int, below: int) -> str:
        def rise(connection: sqlite3.Connection) -> str:
            row = connection.execute(
                "SELECT name FROM inventory WHERE source = ? ORDER BY name DESC LIMIT 1 OFFSET ?", (source, overlap)
            ).fetchone()
            floor = max(_floor(connection, source), "" if row is None else row[0], key=str.encode)
            connection.execute("INSERT OR REPLACE INTO inventory_floors (source, name) VALUES (?, ?)", (source, floor))
            connection.execute(
                "DELETE FROM inventory WHERE source = ?1 AND position < ?2 AND name <= ?3"
                " AND position < (SELECT max(position) FROM inventory WHERE source = ?1)",
                (source, below, floor),
            )
            return floor

        return await self._file.write(rise)


def _floor(connection: sqlite3.Connection, source: str) -> str:
    row = connection.execute("SELECT name FROM inventory_floors WHERE source = ?", (source,)).fetchone()
    return "" if row is None else str(row[0])
