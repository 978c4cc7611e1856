"""Schedules in Redis (the keys: `redis_scripts.py`). Waiters for a run are woken by a Redis stream whose only entry has
the end."""

from __future__ import annotations

import asyncio
import builtins
import json
import struct
from typing import Any

import msgspec

from ...model.errors import InvalidRequest
from ...model.schedule import Firing, Schedule, ScheduledRun, ScheduleRow
from ..redis.sort_keys import digits, packed
from ..state.redis_server import HELD, StateServer
from .redis_scripts import BOUNDS, FIND, FIRE, FORGET, KEYS, LAST, PUT, READ, REMOVE, RUN, TRIM, TRIMMABLE
from .schedules import KEPT_RUNS, MOST_SCHEDULES, DueSchedules, RunBounds, Runs

#: Runs or schedules of one script: a bound on the time that it holds the server.
STEP = 1000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Schedule).decode


class RedisSchedules:
    """Schedules in the state on one server."""

    def __init__(self, server: StateServer) -> None:
        self._server = server
        self._keys = [server.key("schedules", name) for name in KEYS]
        self._changes = self._keys[KEYS.index("changes")]

    async def _run(self, script: Any, *arguments: Any) -> Any:
        return await self._server.run(script, self._keys, *arguments, about="schedules")

    async def put(self, row: ScheduleRow, expected: int) -> ScheduleRow | None:
        schedule = row.schedule
        told = (int(row.paused), _text(row.decided), row.runs, row.passed_over, _text(row.next_at))
        arguments = (schedule.name, expected, MOST_SCHEDULES, _encode(schedule), *told, int(schedule.origin == "file"))
        version = await self._run(PUT, *arguments)
        if version < 0:
            raise InvalidRequest(f"there are {MOST_SCHEDULES} schedules already, the most that are kept: remove some")
        return row._replace(version=version) if version else None

    async def remove(self, name: str) -> bool:
        return bool(await self._run(REMOVE, name))

    async def get(self, name: str) -> ScheduleRow | None:
        _, rows = await self._find("name", name)
        return rows[0] if rows else None

    async def list(self, limit: int) -> builtins.list[ScheduleRow]:
        return (await self._find("all", limit))[1] if limit > 0 else []

    async def due(self, now: float, limit: int) -> DueSchedules:
        later, rows = await self._find("due", _text(now), limit)
        return DueSchedules(rows, later)

    async def _find(self, *what: Any) -> tuple[float, builtins.list[ScheduleRow]]:
        later, *found = await self._run(FIND, *what)
        return float(later), [_row(text, said) for text, said in zip(found[::2], found[1::2], strict=True)]

    async def fire(self, name: str, version: int, decided: float, firing: Firing, at: float) -> bool:
        runs = [part for instant in firing.instants for part in (_member(name, instant), _text(instant))]
        moved = (_text(decided), _text(firing.decided), firing.passed_over, _text(firing.next_at), _text(at))
        return bool(await self._run(FIRE, name, version, *moved, *runs))

    async def run(self, name: str, instant: float, at: float) -> ScheduledRun | None:
        answer = await self._run(RUN, name, _member(name, instant), _text(instant), _text(at))
        return ScheduledRun(int(answer[0]), name, int(answer[1]), instant, at, True) if answer else None

    async def read(self, position: int, limit: int, max_bytes: int) -> Runs:
        if limit < 1:
            return Runs([], {})
        texts, told = await self._run(READ, position, limit, max_bytes)
        schedules = {int(version): _decode(said) for version, said in zip(told[::2], told[1::2], strict=True)}
        return Runs([_run(text) for text in texts], schedules)

    async def last(self, name: str, limit: int) -> builtins.list[ScheduledRun]:
        return [_run(text) for text in await self._run(LAST, packed(name), limit)]

    async def bounds(self) -> RunBounds:
        first, end = await self._run(BOUNDS)
        return RunBounds(int(first or end), int(end))

    async def wait(self, end: int, timeout: float) -> int:
        until = asyncio.get_running_loop().time() + timeout
        while (now := (await self.bounds()).end) == end:
            held = min(HELD, until - asyncio.get_running_loop().time())
            if held <= 0:
                break
            block = ("XREAD", "BLOCK", max(1, int(held * 1000)), "STREAMS", self._changes, f"{end}-0")
            await self._server.wait(*block, about="schedules")
        return now

    async def trim(self, position: int, before: float) -> int:
        while await self._run(FORGET, _text(before), STEP) == STEP:
            pass
        went = 0
        while True:
            texts = await self._run(TRIMMABLE, position, STEP)
            old = [
                (text, run) for text, run in ((text, _run(text)) for text in texts) if _is_old(run, position, before)
            ]
            members = [(text, _member(run.schedule, run.instant) + digits(run.position)) for text, run in old]
            went += await self._run(TRIM, *(part for each in members for part in each)) if members else 0
            if len(old) < STEP:  # runs fire in the order of their positions
                return went


def _is_old(run: ScheduledRun, position: int, before: float) -> bool:
    return run.fired_at < before or run.position < position - KEPT_RUNS


def _member(name: str, instant: float) -> bytes:
    """A schedule and an instant as a member. Instants are from 1970 on, so their eight bytes sort in their order."""
    return packed(name) + struct.pack(">d", instant)


def _row(text: bytes, said: bytes) -> ScheduleRow:
    version, paused, decided, runs, passed_over, next_at, _ = json.loads(text)
    numbers = (int(version), paused == "1", float(decided), int(runs), int(passed_over), float(next_at))
    return ScheduleRow(_decode(said), *numbers)


def _run(text: bytes) -> ScheduledRun:
    position, schedule, version, instant, fired_at, by_hand = json.loads(text)
    return ScheduledRun(int(position), schedule, int(version), float(instant), float(fired_at), by_hand == "1")


def _text(number: float) -> str:
    """The one form of a time as text."""
    return repr(float(number))
