"""Segments in PostgreSQL: a narrow row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model.segment import Segment
from ..postgres.arrays import numbers, shown, texts, truths
from ..postgres.schema import PostgresSchema

_APPEND = (
    "SELECT added FROM S.segments_append(%s, %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[],"
    " %s::bigint[], %s::text[], %s::boolean[], %s::boolean[]) AS added"
)
_COLUMNS = "first, items, ordinal, version, start, length, refused, absent, ended"


class PostgresSegments:
    """Segments in one schema."""

    def __init__(self, schema: PostgresSchema) -> None:
        self._schema = schema

    async def append(self, source: str, segments: Sequence[Segment]) -> bool:
        if not segments:
            return True
        rows = await self._schema.write(
            _APPEND,
            (
                source,
                numbers(each.first for each in segments),
                numbers(each.items for each in segments),
                numbers(each.ordinal for each in segments),
                texts([each.version for each in segments]),
                numbers(each.offset for each in segments),
                numbers(each.length for each in segments),
                texts([shown(each.refused) for each in segments]),
                truths(each.absent for each in segments),
                truths(each.end for each in segments),
            ),
            "segments",
        )
        return bool(rows[0][0])

    async def read(self, source: str, position: int, limit: int) -> list[Segment]:
        rows = await self._schema.read(
            f"SELECT {_COLUMNS} FROM S.segments WHERE source = %s AND first >= coalesce("
            "(SELECT max(first) FROM S.segments WHERE source = %s AND first <= %s), 0) AND first + items > %s"
            " ORDER BY first LIMIT %s",
            (source, source, position, position, limit),
            "segments",
        )
        return [_segment(row) for row in rows]

    async def last(self, source: str) -> Segment | None:
        rows = await self._schema.read(
            f"SELECT {_COLUMNS} FROM S.segments WHERE source = %s ORDER BY first DESC LIMIT 1", (source,), "segments"
        )
        return _segment(rows[0]) if rows else None

    async def trim(self, source: str, below: int) -> None:
        await self._schema.read(
            "DELETE FROM S.segments WHERE source = %s AND first < %s AND first + items <= %s"
            " AND first < (SELECT max(first) FROM S.segments WHERE source = %s)",
            (source, below, below, source),
            "old segments",
        )


def _segment(row: Sequence[Any]) -> Segment:
    return Segment(*row)
