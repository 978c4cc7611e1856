"""An outbox in a PostgreSQL database of somebody's own. Each call is one statement in a transaction of its own, so that
no transaction stays open in that database, and any pooler may stand before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

from ...sdk.model.errors import ConfigError, NotConnected
from ..postgres import PostgresOptions, PostgresServer
from .item import Row
from .outbox import Waiting
from .postgres_table import create
from .table import TABLE, quoted

_NOW = "extract(epoch FROM clock_timestamp())::float8"


class PostgresOutbox:
    """Implements `Outbox`. `options.db_schema` is not used: the table's name may have a schema before it."""

    def __init__(self, options: PostgresOptions, table: str = TABLE) -> None:
        self.name = f"{options.server} ({table})"
        self._table = quoted(table)
        self._create = create(table)
        self._server = PostgresServer(options, _any_server)
        self._server.name = self.name

    async def open(self) -> None:
        self._server.open()

    async def create(self) -> None:
        """Makes the table where it is missing."""
        for statement in self._create:
            await self._server.rows(statement)

    async def close(self) -> None:
        await self._server.close()

    async def take(self, most: int, most_bytes: int, waiting: Sequence[str]) -> list[Row]:
        statement = (
            "SELECT place, token, function, payload, priority, collection, tenant, key, dedupe_key, headers,"
            f" due_at - {_NOW}, CASE WHEN expires_at > 0 THEN expires_at - {_NOW} END FROM (SELECT *,"
            " sum(length(payload)) OVER (ORDER BY place) - length(payload) AS before FROM"
            f" (SELECT * FROM {self._table} AS o WHERE reason = '' AND function <> ALL (%(waiting)s::text[])"
            "  AND (key = '' OR %(waiting)s::text[] = '{}' OR NOT EXISTS"
            f"   (SELECT 1 FROM {self._table} AS w WHERE w.key = o.key AND w.place < o.place AND w.reason = ''"
            "    AND w.function = ANY (%(waiting)s::text[])))"
            " ORDER BY place LIMIT %(most)s) AS oldest) AS summed WHERE before < %(bytes)s ORDER BY place"
        )
        values = {"waiting": list(waiting), "most": most, "bytes": most_bytes}
        return [Row(*row) for row in await self._rows(statement, values, "its rows")]

    async def remove(self, places: Sequence[int]) -> None:
        await self._rows(f"DELETE FROM {self._table} WHERE place = ANY (%s::bigint[])", (list(places),), "a removal")

    async def set_aside(self, reasons: Mapping[int, str]) -> None:
        texts = [reason[:500].replace("\0", "\ufffd") or "refused" for reason in reasons.values()]
        await self._rows(
            f"UPDATE {self._table} AS o SET reason = a.r FROM unnest(%s::bigint[], %s::text[]) AS a (n, r)"
            " WHERE o.place = a.n",
            (list(reasons), texts),
            "a note",
        )

    async def take_up(self) -> int:
        rows = await self._rows(
            f"WITH up AS (UPDATE {self._table} SET reason = '' WHERE reason <> '' RETURNING 1) SELECT count(*) FROM up"
        )
        return int(rows[0][0])

    async def aside(self, most: int) -> list[tuple[int, str, str]]:
        rows = await self._rows(
            f"SELECT place, function, reason FROM {self._table} WHERE reason <> '' ORDER BY place LIMIT %s", (most,)
        )
        return [(place, function, reason) for place, function, reason in rows]

    async def count(self) -> Waiting:
        [row] = await self._rows(
            f"SELECT count(*) FILTER (WHERE reason = ''), count(*) FILTER (WHERE reason <> '') FROM {self._table}"
        )
        return Waiting(*row)

    async def _rows(self, statement: str, values: Any = (), about: str = "") -> list[tuple[Any, ...]]:
        try:
            return await self._server.rows(statement, values, about)
        except ConfigError:  # of tables that are not there, whose advice is for a queue's
            raise NotConnected(f"{self.name}: no such table: `tailrace outbox create` makes it") from None


async def _any_server(connection: AsyncConnection[tuple[Any, ...]]) -> None:
    """It is not ours to refuse."""
