"""Schedules in SQLite: narrow rows of each one's progress, their definitions by version, and their runs."""

from __future__ import annotations

import asyncio
import builtins
import sqlite3

import msgspec

from ...model.errors import InvalidRequest
from ...model.schedule import Firing, Schedule, ScheduledRun, ScheduleRow
from ..sqlite.file import SqliteFile
from .schedules import KEPT_RUNS, MOST_SCHEDULES, DueSchedules, RunBounds, Runs

SCHEMA = """
CREATE TABLE IF NOT EXISTS schedule_definitions (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS schedules (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL UNIQUE REFERENCES schedule_definitions (version),
    paused INTEGER NOT NULL,
    decided REAL NOT NULL,
    runs INTEGER NOT NULL CHECK (runs >= 0),
    passed_over INTEGER NOT NULL CHECK (passed_over >= 0),
    next_at REAL NOT NULL,
    is_kept INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS schedules_next ON schedules (next_at) WHERE next_at > 0;
CREATE TABLE IF NOT EXISTS schedule_runs (
    position INTEGER PRIMARY KEY,
    schedule TEXT NOT NULL,
    version INTEGER NOT NULL REFERENCES schedule_definitions (version),
    instant REAL NOT NULL,
    fired_at REAL NOT NULL,
    by_hand INTEGER NOT NULL,
    UNIQUE (schedule, instant)
) STRICT;
CREATE INDEX IF NOT EXISTS schedule_runs_version ON schedule_runs (version);
CREATE TABLE IF NOT EXISTS schedule_runs_end (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    position INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO schedule_runs_end VALUES (1, 0);
"""

_COLUMNS = "definition.schedule, version, paused, decided, runs, passed_over, next_at"
_ROWS = f"SELECT {_COLUMNS} FROM schedules JOIN schedule_definitions AS definition USING (version)"
_RUN = "position, schedule, version, instant, fired_at, by_hand"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Schedule).decode


class SqliteSchedules:
    """Schedules in one SQLite file. Waiters in this process are woken by its own writes."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._fired = asyncio.Event()

    async def put(self, row: ScheduleRow, expected: int) -> ScheduleRow | None:
        def write(connection: sqlite3.Connection) -> ScheduleRow | None:
            name = row.schedule.name
            before = connection.execute("SELECT version FROM schedules WHERE name = ?", (name,)).fetchone()
            if (0 if before is None else before[0]) != expected:
                return None
            if before is None:
                (count,) = connection.execute("SELECT count(*) FROM schedules").fetchone()
                if count >= MOST_SCHEDULES:
                    raise InvalidRequest(f"there are {count} schedules already, the most that are kept: remove some")
            version = connection.execute(
                "INSERT INTO schedule_definitions (schedule) VALUES (?)", (_encode(row.schedule).decode(),)
            ).lastrowid
            kept = row._replace(version=int(version or 0))
            connection.execute(
                "INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (name, *kept[1:], row.schedule.origin == "file"),
            )
            _forget_definition(connection, expected)
            return kept

        return await self._file.write(write)

    async def remove(self, name: str) -> bool:
        def write(connection: sqlite3.Connection) -> bool:
            found = connection.execute("DELETE FROM schedules WHERE name = ? RETURNING version", (name,)).fetchone()
            if found is not None:
                _forget_definition(connection, found[0])
            return found is not None

        return await self._file.write(write)

    async def get(self, name: str) -> ScheduleRow | None:
        def load(connection: sqlite3.Connection) -> ScheduleRow | None:
            row = connection.execute(f"{_ROWS} WHERE name = ?", (name,)).fetchone()
            return None if row is None else _row(row)

        return await self._file.read(load)

    async def list(self, limit: int) -> builtins.list[ScheduleRow]:
        def load(connection: sqlite3.Connection) -> builtins.list[ScheduleRow]:
            return [_row(row) for row in connection.execute(f"{_ROWS} ORDER BY name LIMIT ?", (limit,))]

        return await self._file.read(load)

    async def due(self, now: float, limit: int) -> DueSchedules:
        def load(connection: sqlite3.Connection) -> DueSchedules:
            rows = connection.execute(
                f"{_ROWS} WHERE next_at > 0 AND next_at <= ? ORDER BY next_at LIMIT ?", (now, limit)
            ).fetchall()
            (following,) = connection.execute(
                "SELECT min(next_at) FROM schedules WHERE next_at > 0 AND next_at > ?", (now,)
            ).fetchone()
            return DueSchedules([_row(row) for row in rows], following or 0.0)

        return await self._file.read(load)

    async def fire(self, name: str, version: int, decided: float, firing: Firing, at: float) -> bool:
        def write(connection: sqlite3.Connection) -> bool:
            moved = connection.execute(
                "UPDATE schedules SET decided = ?, passed_over = passed_over + ?, next_at = ?, runs = runs + ?"
                " WHERE name = ? AND version = ? AND decided = ?",
                (firing.decided, firing.passed_over, firing.next_at, len(firing.instants), name, version, decided),
            ).rowcount
            for instant in firing.instants if moved else ():
                _add(connection, name, version, instant, at, by_hand=False)
            return bool(moved)

        return await self._file.write(write, self._wake)

    async def run(self, name: str, instant: float, at: float) -> ScheduledRun | None:
        def write(connection: sqlite3.Connection) -> ScheduledRun | None:
            found = connection.execute("SELECT version FROM schedules WHERE name = ?", (name,)).fetchone()
            if found is None:
                return None
            position = _add(connection, name, found[0], instant, at, by_hand=True)
            return None if position is None else ScheduledRun(position, name, found[0], instant, at, True)

        return await self._file.write(write, self._wake)

    async def read(self, position: int, limit: int, max_bytes: int) -> Runs:
        def load(connection: sqlite3.Connection) -> Runs:
            found = Runs([], {})
            size = 0
            statement = f"SELECT {_RUN} FROM schedule_runs WHERE position >= ? ORDER BY position LIMIT ?"
            for row in connection.execute(statement, (position, limit)):
                run = _run(row)
                schedule = found.schedules.get(run.version) or _definition(connection, run.version)
                size += len(schedule.payload)
                if found.runs and size > max_bytes:
                    break
                found.schedules[run.version] = schedule
                found.runs.append(run)
            return found

        return await self._file.read(load)

    async def last(self, name: str, limit: int) -> builtins.list[ScheduledRun]:
        def load(connection: sqlite3.Connection) -> builtins.list[ScheduledRun]:
            rows = connection.execute(
                f"SELECT {_RUN} FROM schedule_runs WHERE schedule = ? ORDER BY instant DESC LIMIT ?", (name, limit)
            )
            return [_run(row) for row in rows]

        return await self._file.read(load)

    async def bounds(self) -> RunBounds:
        def load(connection: sqlite3.Connection) -> RunBounds:
            start, end = connection.execute(
                "SELECT (SELECT min(position) FROM schedule_runs), position FROM schedule_runs_end"
            ).fetchone()
            return RunBounds(end if start is None else start, end)

        return await self._file.read(load)

    async def wait(self, end: int, timeout: float) -> int:
        now = end
        try:
            async with asyncio.timeout(timeout):
                while True:
                    fired = self._fired  # taken before looking: a firing during the look is not missed
                    if (now := (await self.bounds()).end) != end:
                        break
                    await fired.wait()
        except TimeoutError:
            pass
        return now

    async def trim(self, position: int, before: float) -> int:
        def write(connection: sqlite3.Connection) -> int:
            gone = connection.execute(
                "DELETE FROM schedule_runs WHERE position < ? AND (fired_at < ? OR position < ?) RETURNING version",
                (position, before, position - KEPT_RUNS),
            ).fetchall()
            over = connection.execute(
                "DELETE FROM schedules WHERE NOT is_kept AND NOT paused AND next_at = 0 AND decided < ?"
                " RETURNING version",
                (before,),
            ).fetchall()
            for version in {version for (version,) in [*gone, *over]}:
                _forget_definition(connection, version)
            return len(gone)

        return await self._file.write(write)

    def _wake(self, fired: object) -> None:
        if fired:
            self._fired.set()
            self._fired = asyncio.Event()


def _add(
    connection: sqlite3.Connection, name: str, version: int, instant: float, at: float, *, by_hand: bool
) -> int | None:
    """Adds a run at the end of the stream; returns its position. None: a run of this instant exists."""
    added = connection.execute(
        "INSERT OR IGNORE INTO schedule_runs SELECT position, ?, ?, ?, ?, ? FROM schedule_runs_end RETURNING position",
        (name, version, instant, at, by_hand),
    ).fetchone()
    if added is None:
        return None
    connection.execute("UPDATE schedule_runs_end SET position = position + 1")
    return int(added[0])


def _forget_definition(connection: sqlite3.Connection, version: int) -> None:
    """Removes the definition of a version, unless a schedule or a run still has it."""
    connection.execute(
        "DELETE FROM schedule_definitions WHERE version = ?1"
        " AND NOT EXISTS (SELECT 1 FROM schedules WHERE version = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM schedule_runs WHERE version = ?1)",
        (version,),
    )


def _definition(connection: sqlite3.Connection, version: int) -> Schedule:
    (text,) = connection.execute("SELECT schedule FROM schedule_definitions WHERE version = ?", (version,)).fetchone()
    return _decode(text)


def _row(row: sqlite3.Row) -> ScheduleRow:
    text, version, paused, *rest = row
    return ScheduleRow(_decode(text), version, bool(paused), *rest)


def _run(row: sqlite3.Row) -> ScheduledRun:
    position, schedule, version, instant, fired_at, by_hand = row
    return ScheduledRun(position, schedule, version, instant, fired_at, bool(by_hand))
