"""The ledger in SQLite: a row per item, and one per partition with the epoch and the checkpoint that are noted.

A row's fields are one text, so that floats survive exactly. A batch is compared with the texts as they were read in one
statement and written in another. When one of them differs, the rows are read and compared field by field: a row may be
the same though its text was written in another form.
"""

from __future__ import annotations

import builtins
import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ...model.errors import InvalidRequest, StaleFence
from ...model.ledger import TERMINAL
from ..sqlite.file import SqliteFile
from ..sqlite.insert import CHUNKS, chunks, insert, places
from .ledger import Change, Delayed, LedgerEntry, LedgerPlace, LedgerRow
from .lifecycle import refusal
from .recent_texts import WAITING, RecentTexts, Written
from .text import rounds

#: The rows that a sweep may remove.
_SWEPT = f"place IN ({LedgerPlace.SUSPECT:d}, {LedgerPlace.DONE:d}, {LedgerPlace.DEAD:d})"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS ledger_heads (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    PRIMARY KEY (source, partition)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ledger (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    position INTEGER NOT NULL,
    place INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (source, partition, position)
) STRICT, WITHOUT ROWID;
DROP INDEX IF EXISTS ledger_places; -- of 0.1: every write of a row paid for it
CREATE INDEX IF NOT EXISTS ledger_swept ON ledger (source, partition, position) WHERE {_SWEPT};
CREATE TABLE IF NOT EXISTS ledger_ended ( -- of what was parked
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    place INTEGER NOT NULL,
    items INTEGER NOT NULL,
    PRIMARY KEY (source, partition, place)
) STRICT, WITHOUT ROWID;
"""

#: Rows as one array: their texts are JSON, so SQLite only has to put commas between them.
_ARRAY = "'[' || coalesce(group_concat({}), '') || ']'"
#: Statements by the size of a batch: the number of its rows that are as they were read, or are still not there.
_AS_READ = {
    chunk: f"WITH j (position, entry) AS (VALUES {places(2, chunk)}) SELECT count(*) FROM j"
    " LEFT JOIN ledger AS l ON l.source = ? AND l.partition = ? AND l.position = j.position WHERE l.entry IS j.entry"
    for chunk in CHUNKS
}
_REWRITE = "ON CONFLICT DO UPDATE SET place = excluded.place, entry = excluded.entry"
_WAITING = f"place IN ({', '.join(f'{place:d}' for place in sorted(WAITING))})"
_OVER = f"place IN ({LedgerPlace.DONE:d}, {LedgerPlace.DEAD:d})"

_encode = msgspec.json.Encoder().encode
_entry = msgspec.json.Decoder(LedgerEntry).decode
_entries = msgspec.json.Decoder(builtins.list[LedgerEntry]).decode


class _Answers(NamedTuple):
    """The answers of a write: the rows as they are afterwards, by the number of their change; the rows that memory is
    to keep; and the positions whose rows are over and passed, so that they go."""

    rows: builtins.list[LedgerEntry | None]
    noted: builtins.list[tuple[int, Written | None]]
    gone: builtins.list[int]


_REMOVE = "DELETE FROM ledger WHERE source = ? AND partition = ? AND position IN (SELECT value FROM json_each(?))"


class SqliteLedger:
    """The ledger in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._recent = RecentTexts()

    async def open(self, source: str, partition: str, epoch: int) -> builtins.list[LedgerEntry]:
        def note(connection: sqlite3.Connection) -> builtins.list[LedgerEntry]:
            newest, passed = _head(connection, source, partition) or (epoch, 0)
            if newest > epoch:
                raise _stale(source, epoch, newest)
            connection.execute(
                "INSERT OR REPLACE INTO ledger_heads VALUES (?, ?, ?, ?)", (source, partition, epoch, passed)
            )
            # A sweep (L20): there is nothing to do unless an older copy of the file was put back in part.
            _sweep(connection, source, partition, passed, suspects=False)
            (text,) = connection.execute(
                f"SELECT {_ARRAY.format('entry')} FROM"
                " (SELECT entry FROM ledger WHERE source = ? AND partition = ? AND position >= ? ORDER BY position)",
                (source, partition, passed),
            ).fetchone()
            return _entries(text)

        return await self._file.write(note)

    async def write(
        self, source: str, partition: str, changes: Sequence[Change], epoch: int | None
    ) -> builtins.list[LedgerEntry | None]:
        for before, after in changes:
            why = refusal(before, after, owner=epoch is not None)
            if why:
                raise InvalidRequest(f"source {source!r}, position {after.position}: {why}; nothing was written")
        if not changes:
            return []
        where = (source, partition)
        texts = self._recent.texts(where, [before for before, _ in changes])

        def apply(connection: sqlite3.Connection) -> _Answers:
            newest, passed = _head(connection, source, partition) or (0, 0)
            if epoch is not None and newest != epoch:
                raise _stale(source, epoch, newest)
            done = _Answers([None] * len(changes), [], [])
            turns = [*rounds(changes)]
            for turn, numbers in enumerate(turns, 1):
                batch = [
                    _Move(number, before, texts[number] or (before and _text(before)), after)
                    for number, (before, after) in zip(numbers, [changes[number] for number in numbers], strict=True)
                ]
                _compare_and_set(connection, where, batch, passed, done, last=turn == len(turns))
            if done.gone:
                connection.execute(_REMOVE, (*where, json.dumps(done.gone)))
            return done

        return (await self._file.write(apply, lambda done: self._recent.note(where, done.noted))).rows

    async def passed(self, source: str, partition: str, epoch: int, position: int) -> int:
        def note(connection: sqlite3.Connection) -> int:
            newest, passed = _head(connection, source, partition) or (0, 0)
            if newest != epoch:
                raise _stale(source, epoch, newest)
            if position > passed:
                connection.execute(
                    "UPDATE ledger_heads SET passed = ? WHERE source = ? AND partition = ?",
                    (position, source, partition),
                )
            return _sweep(connection, source, partition, max(position, passed), suspects=True)

        return await self._file.write(note)

    async def get(self, source: str, partition: str, positions: Sequence[int]) -> dict[int, LedgerEntry]:
        return await self._file.read(lambda connection: _rows(connection, (source, partition), positions))

    async def list(self, source: str, limit: int, after: tuple[str, int] = ("", -1)) -> builtins.list[LedgerRow]:
        def load(connection: sqlite3.Connection) -> builtins.list[Any]:
            return connection.execute(
                "SELECT partition, entry FROM ledger WHERE source = ? AND (partition, position) > (?, ?)"
                " ORDER BY partition, position LIMIT ?",
                (source, *after, limit),
            ).fetchall()

        return [LedgerRow(partition, _entry(text)) for partition, text in await self._file.read(load)]

    async def delayed(self, source: str) -> dict[str, Delayed]:
        def count(connection: sqlite3.Connection) -> builtins.list[Any]:
            return connection.execute(
                "SELECT partition, place, items FROM ledger_ended WHERE source = ?1 UNION ALL"
                f" SELECT partition, {LedgerPlace.PARKED:d}, count(*) FROM ledger"
                f" WHERE source = ?1 AND {_WAITING}"
                " GROUP BY partition",
                (source,),
            ).fetchall()

        names = {LedgerPlace.PARKED: "waiting", LedgerPlace.DONE: "done", LedgerPlace.DEAD: "dead"}
        found: dict[str, Delayed] = {}
        for partition, place, items in await self._file.read(count):
            known, name = found.get(partition, Delayed()), names[LedgerPlace(place)]
            found[partition] = known._replace(**{name: getattr(known, name) + items})
        return found

    async def waiting(self, source: str, partition: str, first: int, end: int) -> int:
        def count(connection: sqlite3.Connection) -> int:
            (rows,) = connection.execute(
                "SELECT count(*) FROM ledger WHERE source = ? AND partition = ? AND position >= ? AND position < ?"
                f" AND {_WAITING}",
                (source, partition, first, end),
            ).fetchone()
            return int(rows)

        return await self._file.read(count)

    async def counts(self) -> dict[str, dict[str, int]]:
        def load(connection: sqlite3.Connection) -> builtins.list[Any]:
            return connection.execute("SELECT source, place, count(*) FROM ledger GROUP BY source, place").fetchall()

        found: dict[str, dict[str, int]] = {}
        for source, place, count in await self._file.read(load):
            found.setdefault(source, {})[LedgerPlace(place).label] = count
        return found


class _Move(NamedTuple):
    """A change by its number in the batch, with the text of the row as it was read."""

    number: int
    before: LedgerEntry | None
    text: str | None
    after: LedgerEntry


def _compare_and_set(
    connection: sqlite3.Connection,
    where: tuple[str, str],
    moves: Sequence[_Move],
    passed: int,
    done: _Answers,
    *,
    last: bool,
) -> None:
    """Writes the moves whose row is as it was read, and adds the row of each one afterwards to `done`. Each has a
    position of its own. In the `last` turn a row that is to go is not even written; in others a later move of it may
    look for it."""
    moves, others = _as_read(connection, where, moves, passed)
    for number, position, stands in others:
        done.rows[number] = stands
        done.noted.append((position, None))
    kept: builtins.list[tuple[str, str, int, int, str]] = []
    ends = Counter[LedgerPlace]()
    for number, before, _, after in moves:
        position, place = after.position, after.place
        is_over = place in TERMINAL
        if is_over and before is not None and before.n:
            ends[place] += 1
        written = None
        goes = is_over and position < passed
        if goes:
            done.gone.append(position)
        if not (goes and last):
            text = _text(after)
            kept.append((*where, position, place + 0, text))
            if place in WAITING:
                written = after, text
        done.rows[number] = after
        done.noted.append((position, written))
    insert(connection, "ledger", kept, behind=_REWRITE)
    insert(
        connection,
        "ledger_ended",
        [(*where, int(place), items) for place, items in ends.items()],
        behind="ON CONFLICT DO UPDATE SET items = items + excluded.items",
    )


def _as_read(
    connection: sqlite3.Connection, where: tuple[str, str], moves: Sequence[_Move], passed: int
) -> tuple[Sequence[_Move], builtins.list[tuple[int, int, LedgerEntry | None]]]:
    """The moves whose row is as it was read; of the others their number, position and row."""
    read = [(move.after.position, move.text) for move in moves]
    stand_so = sum(
        connection.execute(_AS_READ[chunk], (*values, *where)).fetchone()[0] for chunk, values in chunks(read)
    )
    if stand_so == len(moves) and all(move.before or move.after.position >= passed for move in moves):
        return moves, []
    stand = _rows(connection, where, [move.after.position for move in moves])
    same: builtins.list[_Move] = []
    others: builtins.list[tuple[int, int, LedgerEntry | None]] = []
    for move in moves:
        position = move.after.position
        row = stand.get(position)
        if row == move.before and (row is not None or position >= passed):
            same.append(move)
        else:
            others.append((move.number, position, row))
    return same, others


def _text(entry: LedgerEntry) -> str:
    return _encode(entry).decode()


def _rows(connection: sqlite3.Connection, where: tuple[str, str], positions: Sequence[int]) -> dict[int, LedgerEntry]:
    (text,) = connection.execute(
        f"SELECT {_ARRAY.format('l.entry')} FROM json_each(?3) AS j"
        " CROSS JOIN ledger AS l ON l.source = ?1 AND l.partition = ?2 AND l.position = j.value",
        (*where, json.dumps([*positions])),
    ).fetchone()
    return {entry.position: entry for entry in _entries(text)}


def _sweep(connection: sqlite3.Connection, source: str, partition: str, below: int, *, suspects: bool) -> int:
    which = _SWEPT if suspects else f"{_SWEPT} AND {_OVER}"
    return connection.execute(
        f"DELETE FROM ledger INDEXED BY ledger_swept WHERE source = ? AND partition = ? AND position < ? AND {which}",
        (source, partition, below),
    ).rowcount


def _head(connection: sqlite3.Connection, source: str, partition: str) -> tuple[int, int] | None:
    row: tuple[int, int] | None = connection.execute(
        "SELECT epoch, passed FROM ledger_heads WHERE source = ? AND partition = ?", (source, partition)
    ).fetchone()
    return row


def _stale(source: str, epoch: int, newest: int) -> StaleFence:
    return StaleFence(
        f"ledger of {source!r}: epoch {epoch} is over (the newest is {newest or 'none'}); nothing was written"
    )
