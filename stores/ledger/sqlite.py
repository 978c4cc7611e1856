"""The ledger in SQLite: a row per item, and one per partition with the epoch and the checkpoint that are noted.

A row's fields are one text in one form, so that comparing it whole is comparing two texts, and floats survive exactly.
A batch is one statement of reading and one of writing for any number of rows.
"""

from __future__ import annotations

import builtins
import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ...sdk.model.errors import InvalidRequest, StaleFence
from ...sdk.model.ledger import TERMINAL
from ..sqlite import SqliteFile
from ..sqlite_insert import CHUNKS
from .ledger import Change, Delayed, Entry, Place, Row
from .lifecycle import refusal
from .text import entries_of, entry_of, entry_text, rounds

SCHEMA = """
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
CREATE INDEX IF NOT EXISTS ledger_places ON ledger (source, place, partition); -- what is counted, without the entries
CREATE TABLE IF NOT EXISTS ledger_ended ( -- of what was parked
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    place INTEGER NOT NULL,
    items INTEGER NOT NULL,
    PRIMARY KEY (source, partition, place)
) STRICT, WITHOUT ROWID;
"""

#: Rows as one array: their texts are JSON, which SQLite need not read to put commas between them.
_ARRAY = "'[' || coalesce(group_concat({}), '') || ']'"
#: Changes: where, the row as it was read, and as it shall be.
_CHANGES = "WITH j (position, before, place, entry) AS (VALUES {}) "
_AT = "l.source = ? AND l.partition = ? AND l.position = j.position"
#: What is over, of what was parked.
_COUNT_ENDS = (
    f"{_CHANGES}INSERT INTO ledger_ended SELECT ?, ?, j.place, count(*) FROM j CROSS JOIN ledger AS l ON {_AT}"
    " WHERE l.entry = j.before GROUP BY j.place ON CONFLICT DO UPDATE SET items = items + excluded.items"
)
_COMPARE_AND_SET = (
    f"{_CHANGES}INSERT INTO ledger SELECT ?, ?, j.position, j.place, j.entry FROM j LEFT JOIN ledger AS l ON {_AT}"
    " WHERE l.entry IS j.before AND (l.entry IS NOT NULL OR j.position >= ?)"
    " ON CONFLICT DO UPDATE SET place = excluded.place, entry = excluded.entry"
)
_WAITING = f"place IN ({Place.PARKING:d}, {Place.PARKED:d}, {Place.RUNNING:d})"
_OVER = f"place IN ({Place.DONE:d}, {Place.DEAD:d})"


class SqliteLedger:
    """The ledger in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def open(self, source: str, partition: str, epoch: int) -> builtins.list[Entry]:
        def note(connection: sqlite3.Connection) -> builtins.list[Entry]:
            newest, passed = _head(connection, source, partition) or (epoch, 0)
            if newest > epoch:
                raise _stale(source, epoch, newest)
            connection.execute(
                "INSERT OR REPLACE INTO ledger_heads VALUES (?, ?, ?, ?)", (source, partition, epoch, passed)
            )
            # A sweep (L20); nothing to do unless a copy of the file from before was put back in part.
            _sweep(connection, source, partition, passed, suspects=False)
            (text,) = connection.execute(
                f"SELECT {_ARRAY.format('entry')} FROM"
                " (SELECT entry FROM ledger WHERE source = ? AND partition = ? AND position >= ? ORDER BY position)",
                (source, partition, passed),
            ).fetchone()
            return entries_of(text)

        return await self._file.write(note)

    async def write(
        self, source: str, partition: str, changes: Sequence[Change], epoch: int | None
    ) -> builtins.list[Entry | None]:
        for before, after in changes:
            why = refusal(before, after, owner=epoch is not None)
            if why:
                raise InvalidRequest(f"source {source!r}, position {after.position}: {why}; nothing was written")
        turns = rounds(changes)

        def apply(connection: sqlite3.Connection) -> builtins.list[Entry | None]:
            newest, passed = _head(connection, source, partition) or (0, 0)
            if epoch is not None and newest != epoch:
                raise _stale(source, epoch, newest)
            answers: builtins.list[Entry | None] = [None] * len(changes)
            for numbers in turns:
                found = _compare_and_set(connection, source, partition, [changes[each] for each in numbers], passed)
                for number, answer in zip(numbers, found, strict=True):
                    answers[number] = answer
            lowest = min(after.position for _, after in changes)
            if lowest < passed and any(after.place in TERMINAL for _, after in changes):
                _sweep(connection, source, partition, passed, suspects=False)
            return answers

        return await self._file.write(apply) if changes else []

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

    async def get(self, source: str, partition: str, positions: Sequence[int]) -> dict[int, Entry]:
        text = json.dumps([*positions])
        return await self._file.read(lambda connection: _rows(connection, source, partition, text))

    async def list(self, source: str, limit: int, after: tuple[str, int] = ("", -1)) -> builtins.list[Row]:
        def load(connection: sqlite3.Connection) -> builtins.list[Any]:
            return connection.execute(
                "SELECT partition, entry FROM ledger WHERE source = ? AND (partition, position) > (?, ?)"
                " ORDER BY partition, position LIMIT ?",
                (source, *after, limit),
            ).fetchall()

        return [Row(partition, entry_of(json.loads(text))) for partition, text in await self._file.read(load)]

    async def delayed(self, source: str) -> dict[str, Delayed]:
        def count(connection: sqlite3.Connection) -> builtins.list[Any]:
            return connection.execute(
                "SELECT partition, place, items FROM ledger_ended WHERE source = ?1 UNION ALL"
                f" SELECT partition, {Place.PARKED:d}, count(*) FROM ledger"
                f" WHERE source = ?1 AND {_WAITING}"
                " GROUP BY place, partition",  # in the order of the index
                (source,),
            ).fetchall()

        names = {Place.PARKED: "waiting", Place.DONE: "done", Place.DEAD: "dead"}
        found: dict[str, Delayed] = {}
        for partition, place, items in await self._file.read(count):
            known, name = found.get(partition, Delayed()), names[Place(place)]
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
            found.setdefault(source, {})[Place(place).label] = count
        return found


def _compare_and_set(
    connection: sqlite3.Connection, source: str, partition: str, changes: Sequence[Change], passed: int
) -> builtins.list[Entry | None]:
    """Writes those changes whose row is as it was read; returns each one's row after it. Each has its own position.

    Rows travel as parameters of few statements, which are prepared once: as one JSON text they took half as long again.
    """
    rows = [
        (after.position, before and entry_text(before), int(after.place), entry_text(after))
        for before, after in changes
    ]
    ends = [
        row
        for row, (before, after) in zip(rows, changes, strict=True)
        if after.place in TERMINAL and before is not None and before.n
    ]
    for values, flat in _chunks(ends):
        connection.execute(_COUNT_ENDS.format(values), (*flat, source, partition, source, partition))
    former = connection.total_changes
    for values, flat in _chunks(rows):
        connection.execute(_COMPARE_AND_SET.format(values), (*flat, source, partition, source, partition, passed))
    answers: builtins.list[Entry | None] = [after for _, after in changes]
    if connection.total_changes - former == len(changes):
        return answers
    (others,) = connection.execute(
        "SELECT json_group_array(json_array(j.key, json(l.entry))) FROM json_each(?3) AS j"
        " LEFT JOIN ledger AS l ON l.source = ?1 AND l.partition = ?2 AND l.position = j.value ->> 0"
        " WHERE l.entry IS NOT j.value ->> 3",
        (source, partition, json.dumps(rows)),
    ).fetchone()
    for index, fields in json.loads(others):
        answers[index] = fields and entry_of(fields)
    return answers


def _chunks(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, builtins.list[Any]]]:
    """Rows of four values: as many places for values as a statement takes at once, and the values."""
    begin = 0
    for chunk in CHUNKS:
        while len(rows) - begin >= chunk:
            yield ", ".join(["(?, ?, ?, ?)"] * chunk), [*chain.from_iterable(rows[begin : begin + chunk])]
            begin += chunk


def _rows(connection: sqlite3.Connection, source: str, partition: str, positions: str) -> dict[int, Entry]:
    (text,) = connection.execute(
        f"SELECT {_ARRAY.format('l.entry')} FROM json_each(?3) AS j"
        " CROSS JOIN ledger AS l ON l.source = ?1 AND l.partition = ?2 AND l.position = j.value",
        (source, partition, positions),
    ).fetchone()
    return {entry.position: entry for entry in entries_of(text)}


def _sweep(connection: sqlite3.Connection, source: str, partition: str, below: int, *, suspects: bool) -> int:
    over = f"({_OVER} OR place = {Place.SUSPECT:d})" if suspects else _OVER
    return connection.execute(
        f"DELETE FROM ledger WHERE source = ? AND partition = ? AND position < ? AND {over}",
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
