"""Drops in PostgreSQL: a row per range. The schema merges ranges that touch
(stores/postgres/migrations/0002_state.sql)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model.drop import Cause, Drop, DropRow
from ..postgres.arrays import floats, numbers, shown, texts
from ..postgres.schema import PostgresSchema
from .drops import MOST
from .merge import fewer, joined

_OF_RANGES = (
    "%s::bigint[], %s::bigint[], %s::bigint[], %s::smallint[], %s::bigint[], %s::text[], %s::text[], %s::float8[]"
)
_ADD = f"SELECT count FROM S.drops_add(%s, %s, {_OF_RANGES}) AS count"
_THIN = f"SELECT 1 FROM S.drops_thin(%s, %s, %s::smallint[], %s::bigint[], %s::bigint[], %s::bigint[], {_OF_RANGES})"
_COLUMNS = "first, last, items, cause, version, who, why, at"
_ORDER = "ORDER BY source, partition, first, cause, version"


class PostgresDrops:
    """Drops in one schema."""

    def __init__(self, schema: PostgresSchema) -> None:
        self._schema = schema

    async def add(self, source: str, partition: str, drops: Sequence[Drop], below: int) -> None:
        if not drops:
            return
        [(count,)] = await self._schema.write(_ADD, (source, partition, *_columns(joined(drops))), "drops")
        if count > 2 * MOST:
            await self._thin(source, partition, below)

    async def _thin(self, source: str, partition: str, below: int) -> None:
        rows = await self._schema.read(
            f"SELECT {_COLUMNS} FROM S.drops WHERE source = %s AND partition = %s AND last < %s",
            (source, partition, below),
            "drops",
        )
        old = [_drop(row) for row in rows]
        if old:
            known = (
                numbers(int(drop.cause) for drop in old),
                numbers(drop.version for drop in old),
                numbers(drop.first for drop in old),
                numbers(drop.items for drop in old),
            )
            new = _columns(fewer(old, MOST))
            await self._schema.write(_THIN, (source, partition, *known, *new), "fewer drops")

    async def within(self, source: str, partition: str, first: int, last: int) -> list[Drop]:
        rows = await self._schema.read(
            f"SELECT {_COLUMNS} FROM S.drops"
            f" WHERE source = %s AND partition = %s AND last >= %s AND first <= %s {_ORDER}",
            (source, partition, first, last),
            "drops",
        )
        return [_drop(row) for row in rows]

    async def list(self, source: str, limit: int, skip: int = 0) -> list[DropRow]:
        rows = await self._schema.read(
            f"SELECT source, partition, {_COLUMNS} FROM S.drops"
            f" WHERE %s::text = '' OR source = %s::text {_ORDER} LIMIT %s OFFSET %s",
            (source, source, limit, skip),
            "drops",
        )
        return [DropRow(own, partition, _drop(rest)) for own, partition, *rest in rows]


def _columns(drops: Sequence[Drop]) -> tuple[str, ...]:
    return (
        numbers(drop.first for drop in drops),
        numbers(drop.last for drop in drops),
        numbers(drop.items for drop in drops),
        numbers(int(drop.cause) for drop in drops),
        numbers(drop.version for drop in drops),
        texts([shown(drop.who) for drop in drops]),
        texts([shown(drop.why) for drop in drops]),
        floats(drop.at for drop in drops),
    )


def _drop(row: Sequence[Any]) -> Drop:
    first, last, items, cause, *rest = row
    return Drop(first, last, items, Cause(cause), *rest)
