"""Results in SQLite, bounded by age and by bytes; the oldest go first, a few at each write."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ..sqlite.file import SqliteFile
from ..trusted_time import TrustedTime
from .results import GONE

#: Rows that one write may sweep away: a bound on the time that it holds the writer.
SWEEP = 1000

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    time REAL NOT NULL,
    result BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS results_size (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS results_gone (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE
) STRICT;
INSERT OR IGNORE INTO results_size SELECT 1, coalesce(sum(length(result)), 0) FROM results;
CREATE TRIGGER IF NOT EXISTS results_added AFTER INSERT ON results
    BEGIN UPDATE results_size SET bytes = bytes + length(new.result); END;
CREATE TRIGGER IF NOT EXISTS results_removed AFTER DELETE ON results
    BEGIN UPDATE results_size SET bytes = bytes - length(old.result); END;
"""


class SqliteResults:
    """Results in one SQLite file: kept for `retention` seconds by the `trusted` time, and at most `max_bytes` of
    them."""

    def __init__(
        self,
        file: SqliteFile,
        clock: Clock = SYSTEM_CLOCK,
        *,
        retention: float = 3600.0,
        max_bytes: int = 256 << 20,
        trusted: TrustedTime | None = None,
    ) -> None:
        self._file = file
        self._clock = clock
        self._trusted = trusted or TrustedTime(clock)
        self._retention = retention
        self._max_bytes = max_bytes

    async def put(self, results: Mapping[str, bytes]) -> None:
        now, oldest = self._clock.wall(), self._trusted.seconds() - self._retention
        rows = [(id, now, result) for id, result in results.items()]

        def keep(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM results WHERE id = ?", [(id,) for id in results])
            connection.executemany("INSERT INTO results (id, time, result) VALUES (?, ?, ?)", rows)
            connection.execute(  # among the first rows only: just their number is in an index
                "DELETE FROM results WHERE number IN (SELECT number FROM"
                " (SELECT number, time FROM results ORDER BY number LIMIT ?) WHERE time < ?)",
                (SWEEP, oldest),
            )
            (size,) = connection.execute("SELECT bytes FROM results_size").fetchone()
            full = size > self._max_bytes
            while size > self._max_bytes:
                first = connection.execute("SELECT number FROM results ORDER BY number LIMIT 1").fetchone()
                connection.execute(
                    "INSERT OR REPLACE INTO results_gone (id) SELECT id FROM results WHERE number = ?", first
                )
                connection.execute("DELETE FROM results WHERE number = ?", first)
                (size,) = connection.execute("SELECT bytes FROM results_size").fetchone()
            if full:
                connection.execute(
                    "DELETE FROM results_gone WHERE number <= (SELECT max(number) FROM results_gone) - ?", (GONE,)
                )

        if rows:
            await self._file.write(keep)

    async def get(self, id: str) -> bytes | None:
        oldest = self._trusted.seconds() - self._retention

        def load(connection: sqlite3.Connection) -> bytes | None:
            row = connection.execute("SELECT result FROM results WHERE id = ? AND time >= ?", (id, oldest)).fetchone()
            return None if row is None else bytes(row[0])

        return await self._file.read(load)

    async def gone(self, id: str) -> bool:
        found = "SELECT 1 FROM results_gone WHERE id = ?"
        return await self._file.read(lambda connection: connection.execute(found, (id,)).fetchone() is not None)
