"""Checkpoints in SQLite: a row per source with its epoch, a row per partition with its mark.

The ends of all that was handed out, the books and the endings are in tables of their own. The columns `clean` and
`lease` are written and mean nothing: so a file of version 0.1 needs no change.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...model.errors import StaleFence
from ..sqlite.file import SqliteFile
from ..sqlite.insert import insert
from .checkpoints import MOST, Ending, Mark
from .merge import fewer

SCHEMA = """
CREATE TABLE IF NOT EXISTS checkpoint_sources (
    source TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    clean INTEGER NOT NULL,
    lease REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint_marks (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    position INTEGER NOT NULL,
    ahead BLOB NOT NULL,
    PRIMARY KEY (source, partition)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint_handed_out (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    handed_out INTEGER NOT NULL,
    PRIMARY KEY (source, partition)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint_books (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    book BLOB NOT NULL,
    PRIMARY KEY (source, partition)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint_endings ( -- what did not succeed, below the mark
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    counts TEXT NOT NULL, -- by fate
    PRIMARY KEY (source, partition, first)
) STRICT, WITHOUT ROWID;
"""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[int, int]).decode


class SqliteCheckpoints:
    """Checkpoints in one SQLite file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._endings: dict[tuple[str, str], int] = {}  # at most so many, where they were counted
        file.on_rollback(lambda connection: self._endings.clear())

    async def open(self, source: str, epoch: int) -> dict[str, Mark]:
        def note(connection: sqlite3.Connection) -> dict[str, Mark]:
            newest = _epoch(connection, source)
            if newest is not None and newest > epoch:
                raise _stale(source, epoch, newest)
            if newest != epoch:
                connection.execute("INSERT OR REPLACE INTO checkpoint_sources VALUES (?, ?, 0, 0)", (source, epoch))
            return _marks(connection, source)

        return await self._file.write(note)

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        def move(connection: sqlite3.Connection) -> None:
            newest = _epoch(connection, source)
            if newest != epoch:
                raise _stale(source, epoch, newest)
            former = connection.total_changes
            insert(
                connection,
                "checkpoint_marks",
                [(source, partition, mark.position, mark.ahead) for partition, mark in marks.items()],
                behind="ON CONFLICT (source, partition) DO UPDATE SET position = excluded.position,"
                " ahead = excluded.ahead WHERE excluded.position >= position",
            )
            all_go = connection.total_changes - former == len(marks)
            going = marks.keys() if all_go else _going(connection, source, marks)
            books = [(source, partition, mark.book) for partition, mark in marks.items() if partition in going]
            insert(connection, "checkpoint_books", books, replace=True)
            for partition, mark in marks.items():
                if mark.endings:
                    self._keep(connection, (source, partition), mark.endings)
            insert(
                connection,
                "checkpoint_handed_out",
                [(source, partition, mark.handed_out) for partition, mark in marks.items() if mark.handed_out],
                behind="ON CONFLICT (source, partition) DO UPDATE SET handed_out = excluded.handed_out"
                " WHERE excluded.handed_out > handed_out",
            )

        await self._file.write(move)

    def _keep(self, connection: sqlite3.Connection, place: tuple[str, str], endings: Sequence[Ending]) -> None:
        """Adds ranges, and merges old ones when there are too many. They are not counted at every write."""
        most = self._endings.get(place, 2 * MOST) + _add(connection, place, endings)
        if most > 2 * MOST:
            most = _count(connection, place)
            if most > 2 * MOST:
                _thin(connection, place)
                most = _count(connection, place)
        self._endings[place] = most

    async def load(self, source: str) -> dict[str, Mark]:
        return await self._file.read(lambda connection: _marks(connection, source))

    async def endings(self, source: str, partition: str, first: int, end: int) -> list[Ending]:
        def look(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(
                "SELECT first, last, counts FROM checkpoint_endings WHERE source = ?1 AND partition = ?2 AND first < ?4"
                " AND first >= coalesce((SELECT max(first) FROM checkpoint_endings"
                " WHERE source = ?1 AND partition = ?2 AND first <= ?3), 0) AND last >= ?3 ORDER BY first",
                (source, partition, first, end),
            ).fetchall()

        return [_ending(row) for row in await self._file.read(look)]

    async def forget(self, source: str) -> None:
        def drop(connection: sqlite3.Connection) -> None:
            for table in ("marks", "handed_out", "books", "endings"):
                connection.execute(f"DELETE FROM checkpoint_{table} WHERE source = ?", (source,))

        await self._file.write(drop)


def _going(connection: sqlite3.Connection, source: str, marks: Mapping[str, Mark]) -> set[str]:
    """The partitions whose stored position is the one of these marks: the others have a later one."""
    (text,) = connection.execute(
        "SELECT json_group_array(m.partition) FROM json_each(?2) AS j CROSS JOIN checkpoint_marks AS m"
        " ON m.source = ?1 AND m.partition = j.value ->> 0 WHERE m.position = j.value ->> 1",
        (source, json.dumps([(partition, mark.position) for partition, mark in marks.items()])),
    ).fetchone()
    return set(json.loads(text))


def _add(connection: sqlite3.Connection, place: tuple[str, str], endings: Sequence[Ending]) -> int:
    """Adds ranges behind the stored ones; returns how many it wrote. Ranges that are written again may be cut
    differently, no more: they are as they were up to the last position there, and one of them may have grown."""
    newest = connection.execute(
        "SELECT first, last, counts FROM checkpoint_endings WHERE source = ? AND partition = ? ORDER BY first DESC",
        place,
    ).fetchone()
    last = None if newest is None else _ending(newest)
    fate = None if last is None else last.plain  # of the last one
    rows: list[Ending] = []
    for ending in endings:
        if last is not None and ending.last <= last.last:
            continue
        theirs = ending.plain
        if last is not None and ending.first <= last.last + 1 and theirs is not None and theirs == fate:
            last = Ending(last.first, ending.last, {theirs: ending.last - last.first + 1})
            if rows and rows[-1].first == last.first:
                rows.pop()
        else:
            last, fate = ending, theirs
        rows.append(last)
    insert(connection, "checkpoint_endings", [(*place, *_row(ending)) for ending in rows], replace=True)
    return len(rows)


def _count(connection: sqlite3.Connection, place: tuple[str, str]) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM checkpoint_endings WHERE source = ? AND partition = ?", place
    ).fetchone()
    return int(count)


def _thin(connection: sqlite3.Connection, place: tuple[str, str]) -> None:
    found = connection.execute(
        "SELECT first, last, counts FROM checkpoint_endings WHERE source = ? AND partition = ? ORDER BY first", place
    ).fetchall()
    old = [_ending(row) for row in found[: -MOST // 2]]
    connection.execute(
        "DELETE FROM checkpoint_endings WHERE source = ? AND partition = ? AND first <= ?", (*place, old[-1].first)
    )
    insert(connection, "checkpoint_endings", [(*place, *_row(ending)) for ending in fewer(old, MOST // 2)])


def _row(ending: Ending) -> tuple[int, int, str]:
    return ending.first, ending.last, _encode(ending.counts).decode()


def _ending(row: Sequence[Any]) -> Ending:
    first, last, counts = row
    return Ending(first, last, _decode(counts))


def _marks(connection: sqlite3.Connection, source: str) -> dict[str, Mark]:
    rows = connection.execute(
        "SELECT partition, position, ahead, coalesce(handed_out, 0), coalesce(book, x'') FROM checkpoint_marks"
        " LEFT JOIN checkpoint_handed_out USING (source, partition)"
        " LEFT JOIN checkpoint_books USING (source, partition) WHERE source = ?",
        (source,),
    ).fetchall()
    return {partition: Mark(*mark) for partition, *mark in rows}


def _epoch(connection: sqlite3.Connection, source: str) -> int | None:
    row = connection.execute("SELECT epoch FROM checkpoint_sources WHERE source = ?", (source,)).fetchone()
    return None if row is None else int(row[0])


def _stale(source: str, epoch: int, newest: int | None) -> StaleFence:
    return StaleFence(f"source {source!r}: epoch {epoch} is over (the newest is {newest}); nothing was written")
