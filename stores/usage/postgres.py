"""Usage in PostgreSQL: a row for each kind and hour. The schema counts each report once
(stores/postgres/migrations/0015_usage.sql)."""

from __future__ import annotations

from ...model.usage import MOST_FUNCTIONS, MOST_KINDS, OTHERS, UsageReport, UsageRow
from ..postgres.arrays import numbers, shown, texts
from ..postgres.schema import PostgresSchema

_ADD = (
    "SELECT added FROM S.usage_add(%s, %s::bigint, %s::bigint, %s::bigint, %s::bigint, %s::bigint, %s, %s::bigint[],"
    " %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[]) AS added"
)
#: A look-up for each hour, not a look at each row.
_HOURS = (
    "WITH RECURSIVE found(hour) AS (SELECT min(hour) FROM S.usage UNION ALL"
    " SELECT (SELECT min(u.hour) FROM S.usage AS u WHERE u.hour > found.hour) FROM found WHERE found.hour IS NOT NULL)"
    " SELECT hour FROM found WHERE hour IS NOT NULL"
)
_ROWS = (
    "SELECT hour, function, tenant, downstreams, items, micros FROM S.usage WHERE hour = %s::bigint"
    ' ORDER BY function COLLATE "C", tenant COLLATE "C", downstreams COLLATE "C"'
)


class PostgresUsage:
    """Usage in one schema."""

    def __init__(self, schema: PostgresSchema) -> None:
        self._schema = schema

    async def add(self, report: UsageReport, below: int) -> bool:
        rows = report.rows
        newest = max((row.hour for row in rows), default=below)
        columns = (
            numbers(row.hour for row in rows),
            texts([shown(row.function) for row in rows]),
            texts([shown(row.tenant) for row in rows]),
            texts([shown(row.downstreams) for row in rows]),
            numbers(row.items for row in rows),
            numbers(row.micros for row in rows),
        )
        known = (shown(report.scheduler), report.number, newest, below, MOST_KINDS, MOST_FUNCTIONS, OTHERS)
        [(added,)] = await self._schema.write(_ADD, (*known, *columns), "usage")
        return bool(added)

    async def hours(self) -> list[int]:
        return [hour for (hour,) in await self._schema.read(_HOURS, (), "usage")]

    async def of_hour(self, hour: int) -> list[UsageRow]:
        return [UsageRow(*row) for row in await self._schema.read(_ROWS, (hour,), "usage")]
