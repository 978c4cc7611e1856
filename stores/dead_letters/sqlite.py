"""Dead letters in SQLite: one row each, in the order in which they died.

Properties that few letters have (a position, a past, a redrive under way) are in tables of their own, so that most rows
stay small.
"""

from __future__ import annotations

import builtins
import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from ...model.dead_letter import EVERY, DeadLetter, LetterFilter, LetterRoom, Moved, Past
from ...model.tries import Try
from ...model.workload import Kind
from ..sqlite.file import SqliteFile
from ..sqlite.insert import insert
from .dead_letters import FULL_ROOMS, GONE, KEPT_PAST, MOST
from .sql_filter import EngineConditions, condition

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
CREATE TABLE IF NOT EXISTS dead_letter_positions (
    id TEXT PRIMARY KEY,
    partition TEXT NOT NULL,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dead_letter_tries (
    id TEXT PRIMARY KEY,
    tries TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dead_letters_gone ( -- positions whose letter was redriven or purged
    tailer TEXT NOT NULL,
    partition TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (tailer, partition, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dead_letters_folded ( -- how many of those went from that table, the lowest first
    tailer TEXT NOT NULL,
    partition TEXT NOT NULL,
    items INTEGER NOT NULL,
    PRIMARY KEY (tailer, partition)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dead_letters_moving (number INTEGER PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS redriven (
    id TEXT PRIMARY KEY, -- of the workload that the letter became
    at REAL NOT NULL,
    tailer TEXT NOT NULL,
    redrives INTEGER NOT NULL,
    past TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS redriven_at ON redriven (at);
CREATE TABLE IF NOT EXISTS dead_letter_rooms ( -- number of letters
    function TEXT NOT NULL,
    tenant TEXT NOT NULL,
    items INTEGER NOT NULL,
    PRIMARY KEY (function, tenant)
) STRICT, WITHOUT ROWID;
INSERT INTO dead_letter_rooms SELECT function, tenant, count(*) FROM dead_letters GROUP BY function, tenant
    LIMIT (SELECT CASE WHEN EXISTS (SELECT 1 FROM dead_letter_rooms) THEN 0 ELSE -1 END); -- in a file without them
CREATE TRIGGER IF NOT EXISTS dead_letter_added AFTER INSERT ON dead_letters BEGIN
    INSERT INTO dead_letter_rooms VALUES (NEW.function, NEW.tenant, 1) ON CONFLICT DO UPDATE SET items = items + 1;
END;
CREATE TRIGGER IF NOT EXISTS dead_letter_removed AFTER DELETE ON dead_letters BEGIN
    UPDATE dead_letter_rooms SET items = items - 1 WHERE function = OLD.function AND tenant = OLD.tenant;
    DELETE FROM dead_letter_rooms WHERE function = OLD.function AND tenant = OLD.tenant AND items <= 0;
END;
"""

_COLUMNS = (
    "id, tailer, function, priority, collection, tenant, outcome, reason, attempts, crashes, first_seen, died_at,"
    " key, headers, progress"
)
_JOINED = (
    "l.number, l.id, l.tailer, function, priority, collection, tenant, outcome, reason, attempts, crashes, first_seen,"
    " died_at, key, headers, progress, partition, position, past, tries"
)
_FROM = (
    " FROM dead_letters AS l LEFT JOIN dead_letter_positions AS p ON p.id = l.id LEFT JOIN redriven AS r ON r.id = l.id"
    " LEFT JOIN dead_letter_tries AS t ON t.id = l.id"
)
_NUMBERS = "(SELECT value FROM json_each(?))"

_encode = msgspec.json.Encoder().encode
_decode_past = msgspec.json.Decoder(Past).decode


class SqliteDeadLetters:
    """Dead letters in one SQLite file."""

    def __init__(self, file: SqliteFile, most: int = MOST) -> None:
        self._file = file
        self._most = most

    async def add(self, letters: Sequence[DeadLetter]) -> builtins.list[str] | None:
        last = {letter.id: letter for letter in letters}

        def put(connection: sqlite3.Connection) -> builtins.list[str] | None:
            ids = json.dumps([*last])
            known = {id for (id,) in connection.execute(f"SELECT id FROM dead_letters WHERE id IN {_NUMBERS}", (ids,))}
            new = [letter for id, letter in last.items() if id not in known]
            held = _held(connection, {_room(letter) for letter in new})
            refused: dict[str, None] = {}
            for letter in new:
                room = _room(letter)
                if held[room] >= self._most:
                    refused[letter.id] = None
                held[room] += 1
            if known:
                connection.execute(f"DELETE FROM dead_letters WHERE id IN {_NUMBERS}", (ids,))
                connection.execute(  # and their marks
                    "DELETE FROM dead_letters_moving WHERE number NOT IN (SELECT number FROM dead_letters)"
                )
            _put(connection, [letter for id, letter in last.items() if id not in refused])
            return [*refused] or None

        return await self._file.write(put) if last else None

    async def rooms(self, of: Sequence[tuple[str, str]] = ()) -> builtins.list[LetterRoom]:
        def load(connection: sqlite3.Connection) -> builtins.list[LetterRoom]:
            if of:
                held = _held(connection, of)
                return [LetterRoom(room[0], room[1], held[room], self._most) for room in of]
            rows = connection.execute(
                "SELECT function, tenant, items FROM dead_letter_rooms WHERE items >= ? ORDER BY items DESC LIMIT ?",
                (self._most, FULL_ROOMS),
            )
            return [LetterRoom(function, tenant, held, self._most) for function, tenant, held in rows]

        return await self._file.read(load)

    async def list(self, which: LetterFilter, limit: int, after: int = 0, max_bytes: int = 0) -> list[DeadLetter]:
        where, values = _condition(which)
        payload = "payload" if max_bytes else "x''"

        def load(connection: sqlite3.Connection) -> list[Any]:
            rows: list[Any] = []
            left = max_bytes
            for row in connection.execute(
                f"SELECT {_JOINED}, {payload}{_FROM} WHERE l.number > ?{where} ORDER BY l.number LIMIT ?",
                (after, *values, limit),
            ):
                left -= len(row[-1])
                if rows and left < 0:
                    break
                rows.append(row)
            return rows

        return [_letter(row) for row in await self._file.read(load)]

    async def get(self, id: str) -> DeadLetter | None:
        def load(connection: sqlite3.Connection) -> Any:
            return connection.execute(f"SELECT {_JOINED}, payload{_FROM} WHERE l.id = ?", (id,)).fetchone()

        row = await self._file.read(load)
        return None if row is None else _letter(row)

    async def mark(self, numbers: Sequence[int], moving: bool) -> None:
        text = json.dumps([*numbers])

        def note(connection: sqlite3.Connection) -> None:
            connection.execute(f"DELETE FROM dead_letters_moving WHERE number IN {_NUMBERS}", (text,))
            if moving:
                connection.execute(
                    f"INSERT INTO dead_letters_moving SELECT number FROM dead_letters WHERE number IN {_NUMBERS}",
                    (text,),
                )

        await self._file.write(note)

    async def moved(self, letters: Sequence[Moved], now: float) -> int:
        text = json.dumps([each.number for each in letters if not each.stays])
        rows = [(each.id, now, each.past.tailer, each.past.redrives, _encode(each.past).decode()) for each in letters]

        def move(connection: sqlite3.Connection) -> int:
            gone = _forget(connection, text)
            connection.executemany("INSERT OR REPLACE INTO redriven VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute(
                "DELETE FROM redriven WHERE at < ? AND id NOT IN (SELECT id FROM dead_letters)", (now - KEPT_PAST,)
            )
            return gone

        return await self._file.write(move)

    async def remove(self, numbers: Sequence[int]) -> int:
        text = json.dumps([*numbers])
        return await self._file.write(lambda connection: _forget(connection, text))

    async def positions(self, tailer: str) -> dict[str, int]:
        def load(connection: sqlite3.Connection) -> dict[str, int]:
            rows = connection.execute(
                "SELECT partition, sum(items) FROM ("
                " SELECT partition, count(*) AS items FROM dead_letter_positions JOIN dead_letters USING (id)"
                " WHERE tailer = ?1 GROUP BY partition"
                " UNION ALL SELECT partition, count(*) FROM dead_letters_gone WHERE tailer = ?1 GROUP BY partition"
                " UNION ALL SELECT partition, items FROM dead_letters_folded WHERE tailer = ?1) GROUP BY partition",
                (tailer,),
            )
            return {partition: int(items) for partition, items in rows}

        return await self._file.read(load)

    async def died(self, tailer: str, partition: str, first: int, end: int) -> int | None:
        place = (tailer, partition)

        def count(connection: sqlite3.Connection) -> int | None:
            if _is_forgotten(connection, place, first):
                return None
            (letters, gone) = connection.execute(
                "SELECT (SELECT count(*) FROM dead_letter_positions JOIN dead_letters USING (id)"
                " WHERE tailer = ?1 AND partition = ?2 AND position >= ?3 AND position < ?4),"
                " (SELECT count(*) FROM dead_letters_gone"
                " WHERE tailer = ?1 AND partition = ?2 AND position >= ?3 AND position < ?4)",
                (*place, first, end),
            ).fetchone()
            return int(letters + gone)

        return await self._file.read(count)

    async def died_at(self, tailer: str, partition: str, first: int, end: int, limit: int) -> builtins.list[int] | None:
        place = (tailer, partition)

        def load(connection: sqlite3.Connection) -> builtins.list[int] | None:
            if _is_forgotten(connection, place, first):
                return None
            rows = connection.execute(
                "SELECT position FROM dead_letter_positions JOIN dead_letters USING (id)"
                " WHERE tailer = ?1 AND partition = ?2 AND position >= ?3 AND position < ?4"
                " UNION SELECT position FROM dead_letters_gone"
                " WHERE tailer = ?1 AND partition = ?2 AND position >= ?3 AND position < ?4 ORDER BY position LIMIT ?5",
                (*place, first, end, limit),
            )
            return [position for (position,) in rows]

        return await self._file.read(load)

    async def counts(self, which: LetterFilter = EVERY) -> dict[str, int]:
        where, values = _condition(which)

        def load(connection: sqlite3.Connection) -> dict[str, int]:
            rows = connection.execute(
                f"SELECT function, count(*){_FROM} WHERE true{where} GROUP BY function ORDER BY function"
                if where
                else "SELECT function, sum(items) FROM dead_letter_rooms GROUP BY function ORDER BY function",
                values,
            )
            return {function: int(count) for function, count in rows}

        return await self._file.read(load)

    async def count(self) -> int:
        def load(connection: sqlite3.Connection) -> int:
            (count,) = connection.execute("SELECT coalesce(sum(items), 0) FROM dead_letter_rooms").fetchone()
            return int(count)

        return await self._file.read(load)


def _condition(which: LetterFilter) -> tuple[str, list[Any]]:
    own = EngineConditions(
        ids=(f"l.id IN {_NUMBERS}", json.dumps(which.ids)),
        reason=("instr(reason, ?) > 0", which.reason),
        moving="l.number IN (SELECT number FROM dead_letters_moving)",
        mark="?",
    )
    return condition(which, own)


def _room(letter: DeadLetter) -> tuple[str, str]:
    return letter.kind.function, letter.kind.tenant


def _held(connection: sqlite3.Connection, rooms: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Number of letters in each of these rooms."""
    found = connection.execute(
        "SELECT function, tenant, items FROM dead_letter_rooms"
        " WHERE (function, tenant) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        (json.dumps([*rooms]),),
    )
    return dict.fromkeys(rooms, 0) | {(function, tenant): items for function, tenant, items in found}


def _put(connection: sqlite3.Connection, letters: Sequence[DeadLetter]) -> None:
    """Inserts letters, of which none is there."""
    placed = [(letter.id, letter.partition, letter.position) for letter in letters if letter.position >= 0]
    insert(connection, f"dead_letters ({_COLUMNS}, payload)", [_row(letter) for letter in letters])
    insert(connection, "dead_letter_positions", placed, replace=True)
    tries = [(letter.id, _encode(letter.tries).decode()) for letter in letters if letter.tries]
    insert(connection, "dead_letter_tries", tries, replace=True)
    if untried := [letter.id for letter in letters if not letter.tries]:
        connection.execute(f"DELETE FROM dead_letter_tries WHERE id IN {_NUMBERS}", (json.dumps(untried),))
    (some_went,) = connection.execute("SELECT EXISTS (SELECT 1 FROM dead_letters_gone)").fetchone()
    if placed and some_went:
        again = [(letter.tailer, letter.partition, letter.position) for letter in letters]
        connection.execute(
            "DELETE FROM dead_letters_gone WHERE (tailer, partition, position) IN"
            " (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))",
            (json.dumps(again),),
        )


def _is_forgotten(connection: sqlite3.Connection, place: tuple[str, str], first: int) -> bool:
    """Whether some of the positions from `first` on that had a letter are only known as a sum."""
    folded, lowest = connection.execute(
        "SELECT (SELECT items FROM dead_letters_folded WHERE tailer = ?1 AND partition = ?2),"
        " (SELECT min(position) FROM dead_letters_gone WHERE tailer = ?1 AND partition = ?2)",
        place,
    ).fetchone()
    return bool(folded) and (lowest is None or first < lowest)


def _forget(connection: sqlite3.Connection, numbers: str) -> int:
    """Removes letters and all that belongs to them. `numbers` is a JSON array. Returns how many letters there were."""
    ids = json.dumps(
        [id for (id,) in connection.execute(f"SELECT id FROM dead_letters WHERE number IN {_NUMBERS}", (numbers,))]
    )
    placed = connection.execute(
        "INSERT OR IGNORE INTO dead_letters_gone SELECT tailer, partition, position FROM dead_letter_positions"
        f" JOIN dead_letters USING (id) WHERE number IN {_NUMBERS} RETURNING tailer, partition",
        (numbers,),
    ).fetchall()
    for tailer, partition in set(placed):
        _fold(connection, tailer, partition)
    for statement, argument in (
        (f"DELETE FROM dead_letter_positions WHERE id IN {_NUMBERS}", ids),
        (f"DELETE FROM dead_letter_tries WHERE id IN {_NUMBERS}", ids),
        (f"DELETE FROM redriven WHERE id IN {_NUMBERS}", ids),
        (f"DELETE FROM dead_letters_moving WHERE number IN {_NUMBERS}", numbers),
    ):
        connection.execute(statement, (argument,))
    return connection.execute(f"DELETE FROM dead_letters WHERE number IN {_NUMBERS}", (numbers,)).rowcount


def _fold(connection: sqlite3.Connection, tailer: str, partition: str) -> None:
    """Keeps the GONE / 2 highest positions of a partition one by one, when there are more than GONE, and adds the
    others to a sum."""
    (count,) = connection.execute(
        "SELECT count(*) FROM dead_letters_gone WHERE tailer = ? AND partition = ?", (tailer, partition)
    ).fetchone()
    if count <= GONE:
        return
    folded = connection.execute(
        "DELETE FROM dead_letters_gone WHERE tailer = ?1 AND partition = ?2 AND position <= (SELECT position FROM"
        " dead_letters_gone WHERE tailer = ?1 AND partition = ?2 ORDER BY position LIMIT 1 OFFSET ?3)",
        (tailer, partition, count - GONE // 2 - 1),
    ).rowcount
    connection.execute(
        "INSERT INTO dead_letters_folded VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET items = items + excluded.items",
        (tailer, partition, folded),
    )


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
        _encode(letter.headers).decode() if letter.headers else "[]",
        letter.progress,
        letter.payload,
    )


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    number, id, tailer, function, priority, collection, tenant, *rest, partition, position, past, tries, payload = row
    outcome, reason, attempts, crashes, first_seen, died_at, key, headers, progress = rest
    before = None if past is None else _decode_past(past)
    return DeadLetter(
        id,
        tailer,
        Kind(function, priority, collection, tenant),
        payload,
        outcome,
        reason,
        attempts,
        crashes,
        first_seen if before is None else before.first_seen,
        died_at,
        key,
        tuple((name, value) for name, value in json.loads(headers)),
        progress,
        partition or "",
        -1 if position is None else position,
        before,
        tuple(Try(*each) for each in json.loads(tries or "[]")),
        number,
    )
