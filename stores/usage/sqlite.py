"""Usage in SQLite: a row for each kind and hour, and the number of each scheduler's last report."""

from __future__ import annotations

import json
import sqlite3

from ...model.usage import OTHERS, UsageKind, UsageReport, UsageRow, counted_as
from ..sqlite.file import SqliteFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (
    hour INTEGER NOT NULL,
    function TEXT NOT NULL,
    tenant TEXT NOT NULL,
    downstreams TEXT NOT NULL,
    items INTEGER NOT NULL,
    micros INTEGER NOT NULL,
    PRIMARY KEY (hour, function, tenant, downstreams)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage_reports (
    scheduler TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    hour INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

_NUMBER = (
    "INSERT INTO usage_reports VALUES (?, ?, ?) ON CONFLICT (scheduler)"
    " DO UPDATE SET number = excluded.number, hour = excluded.hour WHERE excluded.number > number"
)
_ADD = (
    "INSERT INTO usage SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5"
    " FROM json_each(?) WHERE true ON CONFLICT (hour, function, tenant, downstreams)"
    " DO UPDATE SET items = items + excluded.items, micros = micros + excluded.micros"
)
#: Indexes of the rows whose kind has no row yet in its hour.
_FRESH = (
    "SELECT key FROM json_each(?) AS j LEFT JOIN usage AS u ON u.hour = j.value ->> 0 AND u.function = j.value ->> 1"
    " AND u.tenant = j.value ->> 2 AND u.downstreams = j.value ->> 3 WHERE u.hour IS NULL"
)
_SUMS = "SELECT hour, function, tenant, downstreams, items, micros FROM usage WHERE hour = ? AND tenant = ?"
_ROWS = "SELECT hour, function, tenant, downstreams, items, micros FROM usage WHERE hour = ?"
_ORDER = "ORDER BY function, tenant, downstreams"


class SqliteUsage:
    """Usage in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def add(self, report: UsageReport, below: int) -> bool:
        newest = max((row.hour for row in report.rows), default=below)

        def put(connection: sqlite3.Connection) -> bool:
            if not connection.execute(_NUMBER, (report.scheduler, report.number, newest)).rowcount:
                return False
            rows = [row for row in report.rows if row.hour >= below]
            connection.execute(_ADD, (json.dumps(_placed(connection, rows)),))
            connection.execute("DELETE FROM usage WHERE hour < ?", (below,))
            connection.execute("DELETE FROM usage_reports WHERE hour < ?", (below,))
            return True

        return await self._file.write(put, heavy=True)

    async def hours(self) -> list[int]:
        def load(connection: sqlite3.Connection) -> list[int]:
            found: list[int] = []
            while True:  # a look-up for each hour, not a look at each row
                (hour,) = connection.execute(
                    "SELECT min(hour) FROM usage WHERE hour > ?", (found[-1] if found else -1,)
                ).fetchone()
                if hour is None:
                    return found
                found.append(hour)

        return await self._file.read(load)

    async def of_hour(self, hour: int) -> list[UsageRow]:
        def load(connection: sqlite3.Connection) -> list[UsageRow]:
            return [UsageRow(*row) for row in connection.execute(f"{_ROWS} {_ORDER}", (hour,))]

        return await self._file.read(load)


def _placed(connection: sqlite3.Connection, rows: list[UsageRow]) -> list[UsageRow]:
    """The rows, each under the kind by which it is counted. As a rule all kinds are known."""
    fresh = {place for (place,) in connection.execute(_FRESH, (json.dumps([row[:4] for row in rows]),))}
    known: dict[int, set[UsageKind]] = {}
    sizes: dict[int, int] = {}
    placed = list(rows)
    for place in sorted(fresh):
        row = rows[place]
        if row.hour not in known:
            known[row.hour] = {UsageRow(*each).kind for each in connection.execute(_SUMS, (row.hour, OTHERS))}
            (sizes[row.hour],) = connection.execute("SELECT count(*) FROM usage WHERE hour = ?", (row.hour,)).fetchone()
        kind = counted_as(row.kind, known[row.hour], sizes[row.hour])
        if kind not in known[row.hour]:
            known[row.hour].add(kind)
            sizes[row.hour] += 1
        placed[place] = UsageRow(*kind, row.items, row.micros)
    return placed
