"""An outbox in an application's PostgreSQL database. Each call is one statement in a transaction of its own, so that no
transaction stays open in that database, and any connection pooler may be in between."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection, IntegrityError

from ...model.errors import NotConnected
from ..postgres.server import NoTables, PostgresOptions, PostgresServer, UnsaidValue
from .item import TEXTS, OutboxRow, reason_text, unread
from .outbox import OutboxCounts, not_set_aside
from .postgres_table import create
from .table import TABLE, quoted

_NOW = "extract(epoch FROM clock_timestamp())::float8"
_COLUMNS = (
    "place, token, function, payload, priority, collection, tenant, key, dedupe_key, headers,"
    f" due_at - {_NOW}, CASE WHEN expires_at > 0 THEN expires_at - {_NOW} END"
)


class PostgresOutbox:
    """An `Outbox` on PostgreSQL. `options.db_schema` is not used: the table's name may have a schema before it."""

    def __init__(self, options: PostgresOptions, table: str = TABLE) -> None:
        self.name = f"{options.server} ({table})"
        self._table = quoted(table)
        self._create = create(table)
        self._server = PostgresServer(options, _any_server)
        self._server.name = self.name

    async def open(self) -> None:
        self._server.open()

    async def create(self) -> None:
        """Makes the table if it is missing."""
        for statement in self._create:
            await self._server.rows(statement)

    async def close(self) -> None:
        await self._server.close()

    async def take(self, most: int, most_bytes: int, waiting: Sequence[str]) -> list[OutboxRow]:
        values = {"waiting": list(waiting), "most": most, "bytes": most_bytes}
        try:
            return [_row(row) for row in await self._rows(self._taking(_COLUMNS), values, "rows of the outbox")]
        except UnsaidValue:
            return await self._take_each(values)

    async def _take_each(self, values: Mapping[str, Any]) -> list[OutboxRow]:
        """Takes the rows one by one, including rows that the database cannot send."""
        rows: list[OutboxRow] = []
        one = f"SELECT {_COLUMNS} FROM {self._table} WHERE place = %s"
        for (place,) in await self._rows(self._taking("place"), values, "rows of the outbox"):
            try:
                found = await self._rows(one, (place,), f"row {place}")
                rows.extend(_row(row) for row in found)
            except UnsaidValue as error:
                rows.append(unread(place, str(error)))
        return rows

    def _taking(self, columns: str) -> str:
        return (
            f"SELECT {columns} FROM"
            " (SELECT *, sum(length(payload)) OVER (ORDER BY place) - length(payload) AS before FROM"
            f" (SELECT * FROM {self._table} AS o WHERE reason = '' AND function <> ALL (%(waiting)s::text[])"
            "  AND (key = '' OR %(waiting)s::text[] = '{}' OR NOT EXISTS"
            f"   (SELECT 1 FROM {self._table} AS w WHERE w.key = o.key AND w.place < o.place AND w.reason = ''"
            "    AND w.function = ANY (%(waiting)s::text[])))"
            " ORDER BY place LIMIT %(most)s) AS oldest) AS summed WHERE before < %(bytes)s ORDER BY place"
        )

    async def remove(self, rows: Mapping[int, str]) -> None:
        await self._rows(
            f"DELETE FROM {self._table} AS o USING unnest(%s::bigint[], %s::text[]) AS a (n, t)"
            " WHERE o.place = a.n AND o.token = a.t",
            (list(rows), list(rows.values())),
            "a removal",
        )

    async def set_aside(self, reasons: Mapping[int, str]) -> None:
        try:
            await self._note(reasons)
        except (UnsaidValue, IntegrityError):
            failed = {}
            for place, reason in reasons.items():
                try:
                    await self._note({place: reason.encode("ascii", "backslashreplace").decode()})
                except (UnsaidValue, IntegrityError) as error:
                    failed[place] = str(error).partition("\n")[0]
            if failed:
                raise not_set_aside(self.name, failed) from None

    async def _note(self, reasons: Mapping[int, str]) -> None:
        await self._rows(
            f"UPDATE {self._table} AS o SET reason = a.r FROM unnest(%s::bigint[], %s::text[]) AS a (n, r)"
            " WHERE o.place = a.n",
            (list(reasons), [reason_text(reason) for reason in reasons.values()]),
            "setting rows aside",
        )

    async def take_up(self) -> int:
        rows = await self._rows(
            f"WITH up AS (UPDATE {self._table} SET reason = '' WHERE reason <> '' RETURNING 1) SELECT count(*) FROM up"
        )
        return int(rows[0][0])

    async def aside(self, most: int) -> list[tuple[int, str, str]]:
        statement = f"SELECT {{}} FROM {self._table} WHERE reason <> '' ORDER BY place LIMIT %s"
        try:
            rows = await self._rows(statement.format("place, function, reason"), (most,))
        except UnsaidValue:  # the bytes of a text can always be sent
            shown = "place, convert_to(function, 'SQL_ASCII'), convert_to(reason, 'SQL_ASCII')"
            rows = await self._rows(statement.format(shown), (most,))
        return [(place, _text(function), _text(reason)) for place, function, reason in rows]

    async def count(self) -> OutboxCounts:
        [row] = await self._rows(
            f"SELECT count(*) FILTER (WHERE reason = ''), count(*) FILTER (WHERE reason <> '') FROM {self._table}"
        )
        return OutboxCounts(*row)

    async def _rows(self, statement: str, values: Any = (), about: str = "") -> list[tuple[Any, ...]]:
        try:
            return await self._server.rows(statement, values, about)
        except NoTables:  # its advice is for the tables of a queue
            raise NotConnected(f"{self.name}: no such table: `tailrace outbox create` makes it") from None
        except UnicodeError as error:  # a value that the connection's encoding cannot express
            raise UnsaidValue(f"{self.name}, {about}: {error}") from None


def _row(row: tuple[Any, ...]) -> OutboxRow:
    """The row with its texts as `str`. A database with the encoding SQL_ASCII sends each text as bytes, in the encoding
    of its writer."""
    found = OutboxRow(*row)
    token: Any = found.token
    if isinstance(token, bytes):
        texts = {name: getattr(found, name).decode(errors="surrogateescape") for name in TEXTS}
        found = found._replace(**texts)
    return found


def _text(told: object) -> str:
    return reason_text(told.decode(errors="replace") if isinstance(told, bytes) else told)


async def _any_server(connection: AsyncConnection[tuple[Any, ...]], bound: asyncio.Timeout) -> None:
    """Accepts every server: it is the application's."""
