"""Results in SQLite, bounded by age and by bytes; the oldest go first, a few at each write. Where there is no room,
those of the tenant that has most."""

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
CREATE TABLE IF NOT EXISTS result_tenants ( -- whose a result is; of versions before there are none: nobody's
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS result_tenants_age ON result_tenants (tenant, number);
CREATE TABLE IF NOT EXISTS result_rooms (
    tenant TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TRIGGER IF NOT EXISTS results_left AFTER DELETE ON results
    BEGIN
        UPDATE result_rooms SET bytes = bytes - length(old.result)
            WHERE tenant = (SELECT tenant FROM result_tenants WHERE number = old.number);
        DELETE FROM result_tenants WHERE number = old.number;
    END;
"""
#: Who has most bytes (empty: those without a tenant), and the oldest result of it.
_MOST = (
    "SELECT tenant FROM (SELECT tenant, bytes FROM result_rooms WHERE bytes > 0 UNION ALL"
    " SELECT '', (SELECT bytes FROM results_size) - (SELECT coalesce(sum(bytes), 0) FROM result_rooms))"
    " ORDER BY bytes DESC, tenant LIMIT 1"
)
_OLDEST_OF = "SELECT number FROM result_tenants WHERE tenant = ? ORDER BY number LIMIT 1"
_OLDEST = (
    "SELECT number FROM results AS r WHERE NOT EXISTS (SELECT 1 FROM result_tenants AS t WHERE t.number = r.number)"
    " ORDER BY number LIMIT 1"
)


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
        await self.put_of(results, {})

    async def put_of(self, results: Mapping[str, bytes], tenants: Mapping[str, str]) -> None:
        now, oldest = self._clock.wall(), self._trusted.seconds() - self._retention
        rows = [(id, now, result) for id, result in results.items()]

        def keep(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM results WHERE id = ?", [(id,) for id in results])
            connection.executemany("INSERT INTO results (id, time, result) VALUES (?, ?, ?)", rows)
            if tenants:
                _note_tenants(connection, results, tenants)
            connection.execute(  # among the first rows only: just their number is in an index
                "DELETE FROM results WHERE number IN (SELECT number FROM"
                " (SELECT number, time FROM results ORDER BY number LIMIT ?) WHERE time < ?)",
                (SWEEP, oldest),
            )
            (size,) = connection.execute("SELECT bytes FROM results_size").fetchone()
            full = size > self._max_bytes
            while size > self._max_bytes:
                (whose,) = connection.execute(_MOST).fetchone()
                found = connection.execute(_OLDEST_OF, (whose,)) if whose else connection.execute(_OLDEST)
                first = found.fetchone()
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


def _note_tenants(connection: sqlite3.Connection, results: Mapping[str, bytes], tenants: Mapping[str, str]) -> None:
    """Notes whose results these are that were just stored."""
    named = [(tenant, id) for id, tenant in tenants.items() if tenant and id in results]
    connection.executemany(
        "INSERT INTO result_tenants (number, tenant) SELECT number, ? FROM results WHERE id = ?", named
    )
    connection.executemany(
        "INSERT INTO result_rooms VALUES (?, ?) ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes",
        [(tenant, len(results[id])) for tenant, id in named],
    )
    connection.execute("DELETE FROM result_rooms WHERE bytes <= 0")
