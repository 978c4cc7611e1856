"""Schedules in PostgreSQL: narrow rows of each one's progress, their definitions by version, and their runs."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...model.errors import InvalidRequest
from ...model.schedule import Firing, Schedule, ScheduledRun, ScheduleRow
from ..postgres.arrays import floats
from ..postgres.schema import PostgresSchema
from ..postgres.watch import ChangeWatch
from .schedules import KEPT_RUNS, MOST_SCHEDULES, DueSchedules, RunBounds, Runs

_PUT = (
    "SELECT given FROM S.schedules_put(%s, %s::bigint, %s, %s::boolean, %s::float8, %s::bigint, %s::bigint, %s::float8,"
    " %s::boolean, %s::bigint) AS given"
)
_FIRE = (
    "SELECT fired FROM S.schedules_fire(%s, %s::bigint, %s::float8, %s::float8, %s::bigint, %s::float8, %s::float8[],"
    " %s::float8) AS fired"
)
_RUN_BY_HAND = "SELECT pos, its_version FROM S.schedules_run(%s, %s::float8, %s::float8)"
_COLUMNS = "d.schedule, s.version, s.paused, s.decided, s.runs, s.passed_over, s.next_at"
_ROWS = f"SELECT {_COLUMNS} FROM S.schedules AS s JOIN S.schedule_definitions AS d USING (version)"
_RUN = "position, schedule, version, instant, fired_at, by_hand"
#: Each version's definition comes with the first of its runs. The bound counts the text of definitions, which is longer
#: than the payload in it, so it is doubled.
_READ = (
    f"SELECT {_RUN}, CASE WHEN nth = 1 THEN definition END FROM (SELECT r.*, d.schedule AS definition,"
    " row_number() OVER (PARTITION BY r.version ORDER BY r.position) AS nth,"
    " sum(octet_length(d.schedule)) OVER (ORDER BY r.position) - octet_length(d.schedule) AS before"
    " FROM (SELECT * FROM S.schedule_runs WHERE position >= %s ORDER BY position LIMIT %s) AS r"
    " JOIN S.schedule_definitions AS d ON d.version = r.version) AS found"
    " WHERE before <= 2 * %s::bigint ORDER BY position"
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Schedule).decode


class PostgresSchedules:
    """Schedules in one schema. `fired` is called after each run that was made here."""

    def __init__(self, schema: PostgresSchema, watch: ChangeWatch, fired: Callable[[], None]) -> None:
        self._schema = schema
        self._watch = watch
        self._fired = fired

    async def put(self, row: ScheduleRow, expected: int) -> ScheduleRow | None:
        schedule = row.schedule
        arguments = (
            schedule.name,
            expected,
            _encode(schedule).decode(),
            *row[2:],
            schedule.origin == "file",
            MOST_SCHEDULES,
        )
        [(version,)] = await self._schema.write(_PUT, arguments, "a schedule")
        if version < 0:
            raise InvalidRequest(f"there are {MOST_SCHEDULES} schedules already, the most that are kept: remove some")
        return row._replace(version=version) if version else None

    async def remove(self, name: str) -> bool:
        [(gone,)] = await self._schema.write("SELECT gone FROM S.schedules_remove(%s) AS gone", (name,), "a schedule")
        return bool(gone)

    async def get(self, name: str) -> ScheduleRow | None:
        rows = await self._schema.read(f"{_ROWS} WHERE s.name = %s", (name,), "a schedule")
        return _row(rows[0]) if rows else None

    async def list(self, limit: int) -> builtins.list[ScheduleRow]:
        rows = await self._schema.read(f"{_ROWS} ORDER BY s.name LIMIT %s", (limit,), "schedules")
        return [_row(row) for row in rows]

    async def due(self, now: float, limit: int) -> DueSchedules:
        rows = await self._schema.read(
            f"(SELECT {_COLUMNS} FROM (SELECT * FROM S.schedules WHERE next_at > 0 AND next_at <= %s::float8"
            " ORDER BY next_at LIMIT %s) AS s JOIN S.schedule_definitions AS d USING (version) ORDER BY s.next_at)"
            " UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, (SELECT min(next_at) FROM S.schedules"
            " WHERE next_at > 0 AND next_at > %s::float8)",
            (now, limit, now),
            "schedules",
        )
        return DueSchedules([_row(row) for row in rows if row[0] is not None], rows[-1][-1] or 0.0)

    async def fire(self, name: str, version: int, decided: float, firing: Firing, at: float) -> bool:
        [(fired,)] = await self._schema.write(
            _FIRE,
            (name, version, decided, firing.decided, firing.passed_over, firing.next_at, floats(firing.instants), at),
            "a run of a schedule",
        )
        if fired:
            self._fired()
        return bool(fired)

    async def run(self, name: str, instant: float, at: float) -> ScheduledRun | None:
        rows = await self._schema.write(_RUN_BY_HAND, (name, instant, at), "a run of a schedule")
        if not rows:
            return None
        self._fired()
        [(position, version)] = rows
        return ScheduledRun(position, name, version, instant, at, True)

    async def read(self, position: int, limit: int, max_bytes: int) -> Runs:
        found = Runs([], {})
        size = 0
        for *row, definition in await self._schema.read(_READ, (position, limit, max_bytes), "runs of schedules"):
            run = ScheduledRun(*row)
            schedule = _decode(definition) if definition is not None else found.schedules[run.version]
            size += len(schedule.payload)
            if found.runs and size > max_bytes:
                break
            found.schedules[run.version] = schedule
            found.runs.append(run)
        return found

    async def last(self, name: str, limit: int) -> builtins.list[ScheduledRun]:
        rows = await self._schema.read(
            f"SELECT {_RUN} FROM S.schedule_runs WHERE schedule = %s ORDER BY instant DESC LIMIT %s",
            (name, limit),
            "runs of schedules",
        )
        return [ScheduledRun(*row) for row in rows]

    async def bounds(self) -> RunBounds:
        [(start, end)] = await self._schema.read(
            "SELECT (SELECT min(position) FROM S.schedule_runs), position FROM S.schedule_runs_end",
            (),
            "runs of schedules",
        )
        return RunBounds(end if start is None else start, end)

    async def wait(self, end: int, timeout: float) -> int:
        async def look() -> int | None:
            now = (await self.bounds()).end
            return None if now == end else now

        try:
            async with asyncio.timeout(timeout):
                return await self._watch.until(look)
        except TimeoutError:
            return end

    async def trim(self, position: int, before: float) -> int:
        [(gone,)] = await self._schema.write(
            "SELECT gone FROM S.schedules_trim(%s::bigint, %s::float8, %s::bigint) AS gone",
            (position, before, KEPT_RUNS),
            "old runs of schedules",
        )
        return int(gone)


def _row(row: Sequence[Any]) -> ScheduleRow:
    text, *rest = row
    return ScheduleRow(_decode(text), *rest)
