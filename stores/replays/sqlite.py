"""Replays in SQLite: a row each. Few are made, so a row is one text."""

from __future__ import annotations

import builtins
import sqlite3
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from ...model.errors import InvalidRequest
from ...model.replay import OVER, Replay, ReplayState, moved
from ..sqlite.file import SqliteFile
from .replays import KEPT

SCHEMA = """
CREATE TABLE IF NOT EXISTS replays (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    is_over INTEGER NOT NULL,
    replay TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS replays_going ON replays (is_over, number);
"""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Replay).decode


class SqliteReplays:
    """Replays in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def add(self, replay: Replay) -> Replay:
        def put(connection: sqlite3.Connection) -> Replay:
            number = connection.execute("INSERT INTO replays (is_over, replay) VALUES (0, '')").lastrowid
            kept = replace(replay, number=int(number or 0))
            _write(connection, kept)
            connection.execute(
                "DELETE FROM replays WHERE is_over AND number <= (SELECT number FROM replays WHERE is_over"
                " ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (KEPT,),
            )
            return kept

        return await self._file.write(put)

    async def get(self, number: int) -> Replay | None:
        return await self._file.read(lambda connection: _read(connection, number))

    async def list(self, limit: int, going: bool = False) -> builtins.list[Replay]:
        def load(connection: sqlite3.Connection) -> builtins.list[Replay]:
            rows = connection.execute(
                f"SELECT replay FROM replays {'WHERE NOT is_over' if going else ''} ORDER BY number DESC LIMIT ?",
                (limit,),
            )
            return [_decode(text) for (text,) in rows]

        return await self._file.read(load)

    async def answer(self, answer: Replay) -> Replay:
        def put(connection: sqlite3.Connection) -> Replay:
            before = _known(connection, answer.number)
            if before.state is not ReplayState.ASKED:
                return before
            _write(connection, answer)
            return answer

        return await self._file.write(put)

    async def move(self, number: int, state: ReplayState, at: float, counts: Mapping[str, int]) -> Replay:
        def put(connection: sqlite3.Connection) -> Replay:
            before = _known(connection, number)
            after = moved(before, state, at, counts)
            if after is before:
                return before
            _write(connection, after)
            return after

        return await self._file.write(put)


def _read(connection: sqlite3.Connection, number: int) -> Replay | None:
    row = connection.execute("SELECT replay FROM replays WHERE number = ?", (number,)).fetchone()
    return None if row is None else _decode(row[0])


def _known(connection: sqlite3.Connection, number: int) -> Replay:
    if (replay := _read(connection, number)) is None:
        raise InvalidRequest(f"there is no replay {number}: `tailrace replay list` shows all replays")
    return replay


def _write(connection: sqlite3.Connection, replay: Replay) -> None:
    connection.execute(
        "UPDATE replays SET is_over = ?, replay = ? WHERE number = ?",
        (replay.state in OVER, _encode(replay).decode(), replay.number),
    )
