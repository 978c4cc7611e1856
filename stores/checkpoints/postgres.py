"""Checkpoints in PostgreSQL: each method is one call of a function of the schema
(stores/postgres/migrations/0002_state.sql), except the seldom one that merges ranges.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...model.errors import StaleFence
from ..postgres.arrays import blobs, numbers, texts, texts_or_none
from ..postgres.schema import PostgresSchema
from .checkpoints import MOST, Ending, Mark
from .merge import fewer

_OPEN = "SELECT newest, partition, pos, ahead, handed_out, book FROM S.checkpoint_open(%s, %s::bigint)"
_COMMIT = (
    "SELECT newest, partition, written FROM S.checkpoint_commit(%s, %s::bigint, %s::text[], %s::bigint[], %s::bytea[],"
    " %s::bigint[], %s::bytea[], %s::text[], %s::bigint[], %s::bigint[], %s::smallint[], %s::text[])"
)
_THIN = (
    "SELECT count FROM S.checkpoint_thin(%s, %s::bigint, %s, %s::bigint, %s::bigint[], %s::bigint[], %s::smallint[],"
    " %s::text[]) AS count"
)
_ENDINGS = "SELECT first, last, plain, counts FROM S.checkpoint_endings WHERE source = %s AND partition = %s"


class PostgresCheckpoints:
    """Checkpoints in one schema."""

    def __init__(self, schema: PostgresSchema) -> None:
        self._schema = schema
        self._ranges: dict[tuple[str, str], int] = {}  # at most so many, where they were counted

    async def open(self, source: str, epoch: int) -> dict[str, Mark]:
        (newest, *_), *marks = await self._schema.write(_OPEN, (source, epoch), "the opening of a checkpoint")
        if newest != epoch:
            raise _stale(source, epoch, newest)
        return _marks([row[1:] for row in marks])

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        names = list(marks)
        endings = [(partition, ending) for partition, mark in marks.items() for ending in mark.endings]
        (newest, *_), *added = await self._schema.write(
            _COMMIT,
            (
                source,
                epoch,
                texts(names),
                numbers(mark.position for mark in marks.values()),
                blobs([mark.ahead for mark in marks.values()]),
                numbers(mark.handed_out for mark in marks.values()),
                blobs([mark.book for mark in marks.values()]),
                texts([partition for partition, _ in endings]),
                *_columns([ending for _, ending in endings]),
            ),
            "a checkpoint",
        )
        if newest != epoch:
            raise _stale(source, epoch, newest)
        for _, partition, written in added:
            place = (source, partition)
            most = self._ranges.get(place, 2 * MOST) + written
            self._ranges[place] = most if most <= 2 * MOST else await self._thin(source, partition, epoch)

    async def _thin(self, source: str, partition: str, epoch: int) -> int:
        """Merges ranges where there are too many; returns their number. A process that dies before leaves that to a
        later commit."""
        rows = await self._schema.read(f"{_ENDINGS} ORDER BY first", (source, partition), "endings")
        old = [_ending(row) for row in rows[: -MOST // 2]] if len(rows) > 2 * MOST else []
        upto = old[-1].first if old else 0
        new = _columns(fewer(old, MOST // 2) if old else [])
        [(count,)] = await self._schema.write(_THIN, (source, epoch, partition, upto, *new), "fewer endings")
        return int(count)

    async def load(self, source: str) -> dict[str, Mark]:
        rows = await self._schema.read(
            "SELECT partition, position, ahead, handed_out, book FROM S.checkpoint_marks WHERE source = %s",
            (source,),
            "checkpoints",
        )
        return _marks(rows)

    async def endings(self, source: str, partition: str, first: int, end: int) -> list[Ending]:
        rows = await self._schema.read(
            f"{_ENDINGS} AND first < %s AND last >= %s AND first >= coalesce((SELECT max(first) FROM"
            " S.checkpoint_endings WHERE source = %s AND partition = %s AND first <= %s), 0) ORDER BY first",
            (source, partition, end, first, source, partition, first),
            "endings",
        )
        return [_ending(row) for row in rows]

    async def forget(self, source: str) -> None:
        await self._schema.write("SELECT 1 FROM S.checkpoint_forget(%s)", (source,), "the end of a checkpoint")
        self._ranges = {place: most for place, most in self._ranges.items() if place[0] != source}


def _columns(endings: Sequence[Ending]) -> tuple[str, str, str, str]:
    plains = [ending.plain for ending in endings]
    counts = [
        json.dumps(ending.counts) if plain is None else None for ending, plain in zip(endings, plains, strict=True)
    ]
    return (
        numbers(ending.first for ending in endings),
        numbers(ending.last for ending in endings),
        numbers(plains),
        texts_or_none(counts),
    )


def _ending(row: Sequence[Any]) -> Ending:
    first, last, plain, counts = row
    if plain is not None:
        return Ending(first, last, {plain: last - first + 1})
    return Ending(first, last, {int(fate): count for fate, count in json.loads(counts).items()})


def _marks(rows: Sequence[Sequence[Any]]) -> dict[str, Mark]:
    return {partition: Mark(*mark) for partition, *mark in rows}


def _stale(source: str, epoch: int, newest: int | None) -> StaleFence:
    return StaleFence(f"source {source!r}: epoch {epoch} is over (the newest is {newest}); nothing was written")
