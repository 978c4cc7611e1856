"""Segments in SQLite: a narrow row each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from ...model.segment import Segment
from ..sqlite.file import SqliteFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS segments (
    source TEXT NOT NULL,
    first INTEGER NOT NULL,
    items INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    version TEXT NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    refused TEXT NOT NULL,
    absent INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    PRIMARY KEY (source, first)
) STRICT, WITHOUT ROWID;
"""

_COLUMNS = "first, items, ordinal, version, offset, length, refused, absent, ended"
_LAST = f"SELECT {_COLUMNS} FROM segments WHERE source = ? ORDER BY first DESC LIMIT 1"


class SqliteSegments:
    """Segments in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def append(self, source: str, segments: Sequence[Segment]) -> bool:
        text = json.dumps(segments)

        def add(connection: sqlite3.Connection) -> bool:
            last = connection.execute(_LAST, (source,)).fetchone()
            if segments[0].first != (0 if last is None else _segment(last).after):
                return False
            connection.execute(
                f"INSERT INTO segments (source, {_COLUMNS})"
                " SELECT ?, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,"
                " value ->> 7, value ->> 8 FROM json_each(?)",
                (source, text),
            )
            return True

        return await self._file.write(add) if segments else True

    async def read(self, source: str, position: int, limit: int) -> list[Segment]:
        def load(connection: sqlite3.Connection) -> list[Segment]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM segments WHERE source = ?1 AND first >= coalesce("
                "(SELECT max(first) FROM segments WHERE source = ?1 AND first <= ?2), 0) AND first + items > ?2"
                " ORDER BY first LIMIT ?3",
                (source, position, limit),
            ).fetchall()
            return [_segment(row) for row in rows]

        return await self._file.read(load)

    async def last(self, source: str) -> Segment | None:
        def load(connection: sqlite3.Connection) -> Segment | None:
            row = connection.execute(_LAST, (source,)).fetchone()
            return None if row is None else _segment(row)

        return await self._file.read(load)

    async def trim(self, source: str, below: int) -> None:
        await self._file.write(
            lambda connection: (
                connection.execute(
                    "DELETE FROM segments WHERE source = ?1 AND first < ?2 AND first + items <= ?2"
                    " AND first < (SELECT max(first) FROM segments WHERE source = ?1)",
                    (source, below),
                ).rowcount
            )
        )


def _segment(row: Any) -> Segment:
    first, items, ordinal, version, offset, length, refused, absent, ended = row
    return Segment(first, items, ordinal, version, offset, length, refused, bool(absent), bool(ended))
