"""An outbox in an application's SQLite file. The file keeps its journal mode and all its settings."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...model.errors import NotConnected
from ..sqlite.errors import is_of_a_row
from .item import OutboxRow, reason_text
from .outbox import OutboxCounts, not_set_aside
from .sqlite_table import NOW, any_text, create
from .table import TABLE, quoted

#: Seconds for which a write waits for writes of the file's other users.
PATIENCE = 5.0
_IDS = "(SELECT value FROM json_each(?))"

T = TypeVar("T")


class SqliteOutbox:
    """An `Outbox` on SQLite. Each call is one transaction, in a thread."""

    def __init__(self, path: Path, table: str = TABLE) -> None:
        self.path = path
        self.name = f"{path} ({table})"
        self._table = quoted(table)
        self._create = create(table)
        self._connection: sqlite3.Connection | None = None
        self._one_at_a_time = asyncio.Lock()

    async def open(self) -> None:
        """Does nothing: the first call connects."""

    async def create(self) -> None:
        """Makes the file and the table if they are missing."""
        await self._call(lambda connection: [connection.execute(each) for each in self._create], make=True)

    async def close(self) -> None:
        async with self._one_at_a_time:
            connection, self._connection = self._connection, None
            if connection is not None:
                await asyncio.to_thread(connection.close)

    async def take(self, most: int, most_bytes: int, waiting: Sequence[str]) -> list[OutboxRow]:
        table, names = self._table, json.dumps(list(waiting))
        behind = (
            f" AND (key = '' OR NOT EXISTS (SELECT 1 FROM {table} AS w WHERE w.key = o.key AND w.place < o.place"
            f" AND w.reason = '' AND w.function IN {_IDS}))"
        )
        statement = (
            "SELECT place, token, function, payload, priority, collection, tenant, key, dedupe_key, headers,"
            f" due_at - {NOW}, iif(expires_at > 0, expires_at - {NOW}, NULL) FROM (SELECT *,"
            " sum(size) OVER (ORDER BY place) - size AS before FROM"
            f" (SELECT *, coalesce(length(payload), 0) AS size FROM {table} AS o WHERE reason = ''"
            f" AND function NOT IN {_IDS}{behind if waiting else ''}"
            " ORDER BY place LIMIT ?)) WHERE before < ? ORDER BY place"
        )
        values = (*[names] * (2 if waiting else 1), most, most_bytes)
        rows = await self._call(lambda connection: _rows(connection, statement, values))
        return [OutboxRow(*row) for row in rows]

    async def remove(self, rows: Mapping[int, str]) -> None:
        statement = f"DELETE FROM {self._table} WHERE place = ? AND token = ?"
        await self._call(lambda connection: connection.executemany(statement, [*rows.items()]))

    async def set_aside(self, reasons: Mapping[int, str]) -> None:
        values = [(reason_text(reason), place) for place, reason in reasons.items()]
        statement = f"UPDATE {self._table} SET reason = ? WHERE place = ?"

        def note(connection: sqlite3.Connection) -> dict[int, str]:
            with contextlib.suppress(sqlite3.IntegrityError):
                connection.executemany(statement, values)
                return {}
            failed = {}
            for reason, place in values:
                try:
                    connection.execute(statement, (reason, place))
                except sqlite3.IntegrityError as error:
                    failed[place] = str(error)
            return failed

        if failed := await self._call(note):
            raise not_set_aside(self.name, failed)

    async def take_up(self) -> int:
        return await self._call(
            lambda connection: connection.execute(f"UPDATE {self._table} SET reason = '' WHERE reason <> ''").rowcount
        )

    async def aside(self, most: int) -> list[tuple[int, str, str]]:
        statement = f"SELECT place, function, reason FROM {self._table} WHERE reason <> '' ORDER BY place LIMIT ?"
        found = await self._call(lambda connection: _rows(connection, statement, (most,)))
        return [(place, reason_text(function), reason_text(reason)) for place, function, reason in found]

    async def count(self) -> OutboxCounts:
        statement = f"SELECT coalesce(sum(reason = ''), 0), coalesce(sum(reason <> ''), 0) FROM {self._table}"
        return OutboxCounts(*await self._call(lambda connection: connection.execute(statement).fetchone()))

    async def _call(self, fn: Callable[[sqlite3.Connection], T], *, make: bool = False) -> T:
        """Runs a call in a thread. A thread cannot be cancelled, so the next call waits for it even if the caller of
        this one gave up."""
        return await asyncio.shield(asyncio.create_task(self._turn(fn, make)))

    async def _turn(self, fn: Callable[[sqlite3.Connection], T], make: bool) -> T:
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._run, fn, make)

    def _run(self, fn: Callable[[sqlite3.Connection], T], make: bool) -> T:
        try:
            if self._connection is None:
                if not make and not self.path.exists():
                    raise NotConnected(f"{self.name}: the file does not exist (yet)")
                self._connection = sqlite3.connect(self.path, timeout=PATIENCE, check_same_thread=False)
            with self._connection as connection:
                return fn(connection)
        except sqlite3.Error as error:
            if "no such table" in str(error) or "no such column" in str(error):
                raise NotConnected(f"{self.name}: {error}: `tailrace outbox create` makes the table") from None
            with contextlib.suppress(sqlite3.Error):
                if self._connection is not None:
                    self._connection.close()
            self._connection = None
            raise NotConnected(f"{self.name}: {error}") from None


def _rows(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> list[Any]:
    """The rows that a statement finds, even if a text in them is not valid: see `any_text`."""
    try:
        return connection.execute(statement, values).fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not is_of_a_row(error):
            raise
        connection.text_factory = any_text
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.text_factory = str
