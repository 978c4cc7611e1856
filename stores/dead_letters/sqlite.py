"""Dead letters in SQLite: one row each, in the order in which they died."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from ...sdk.model.dead_letter import DeadLetter
from ...sdk.model.workload import Kind
from ..sqlite import SqliteFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    tailer TEXT NOT NULL,
    function TEXT NOT NULL,
    priority INTEGER NOT NULL,
    collection TEXT NOT NULL,
    tenant TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    first_seen REAL NOT NULL,
    died_at REAL NOT NULL,
    key TEXT NOT NULL,
    headers TEXT NOT NULL,
    progress TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS dead_letters_function ON dead_letters (function, number);
"""

_COLUMNS = (
    "id, tailer, function, priority, collection, tenant, outcome, reason, attempts, crashes, first_seen, died_at,"
    " key, headers, progress"
)


class SqliteDeadLetters:
    """Dead letters in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def add(self, letters: Sequence[DeadLetter]) -> None:
        rows = [_row(letter) for letter in letters]

        def put(connection: sqlite3.Connection) -> None:
            connection.executemany(
                f"INSERT OR REPLACE INTO dead_letters ({_COLUMNS}, payload)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

        if rows:
            await self._file.write(put)

    async def list(self, function: str, limit: int, after: str = "") -> list[DeadLetter]:
        def load(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(
                f"SELECT {_COLUMNS}, x'' FROM dead_letters"
                " WHERE (?1 = '' OR function = ?1)"
                " AND number > coalesce((SELECT number FROM dead_letters WHERE id = ?2), 0)"
                " ORDER BY number LIMIT ?3",
                (function, after, limit),
            ).fetchall()

        return [_letter(row) for row in await self._file.read(load)]

    async def get(self, id: str) -> DeadLetter | None:
        def load(connection: sqlite3.Connection) -> Any:
            return connection.execute(
                f"SELECT {_COLUMNS}, payload FROM dead_letters WHERE id = ?",
                (id,),
            ).fetchone()

        row = await self._file.read(load)
        return None if row is None else _letter(row)

    async def remove(self, ids: Sequence[str]) -> int:
        text = json.dumps([*ids])

        def forget(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "DELETE FROM dead_letters WHERE id IN (SELECT value FROM json_each(?))", (text,)
            ).rowcount

        return await self._file.write(forget)

    async def count(self) -> int:
        def load(connection: sqlite3.Connection) -> int:
            (count,) = connection.execute("SELECT count(*) FROM dead_letters").fetchone()
            return int(count)

        return await self._file.read(load)


def _row(letter: DeadLetter) -> tuple[Any, ...]:
    kind = letter.kind
    return (
        letter.id,
        letter.tailer,
        kind.function,
        int(kind.priority),
        kind.collection,
        kind.tenant,
        letter.outcome,
        letter.reason,
        letter.attempts,
        letter.crashes,
        letter.first_seen,
        letter.died_at,
        letter.key,
        json.dumps(letter.headers),
        letter.progress,
        letter.payload,
    )


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    id, tailer, function, priority, collection, tenant, *rest, key, headers, progress, payload = row
    outcome, reason, attempts, crashes, first_seen, died_at = rest
    return DeadLetter(
        id,
        tailer,
        Kind(function, priority, collection, tenant),
        payload,
        outcome,
        reason,
        attempts,
        crashes,
        first_seen,
        died_at,
        key,
        tuple((name, value) for name, value in json.loads(headers)),
        progress,
    )
