"""The ledger in PostgreSQL: each method is one call of a function of the schema
(stores/postgres/migrations/0002_state.sql) or one statement, for any number of rows.

A row's fields are one text in one form (`text.py`), which every write compares. The fields that the schema itself
checks (place, n and fence) stand beside it.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence

from ...model.errors import InvalidRequest, StaleFence
from ..postgres.arrays import numbers, texts, texts_or_none
from ..postgres.schema import PostgresSchema
from .ledger import Change, Delayed, LedgerEntry, LedgerPlace, LedgerRow
from .lifecycle import refusal
from .text import entry_of, entry_text, rounds

_OPEN = "SELECT newest, entries FROM S.ledger_open(%s, %s, %s::bigint)"
_WRITE = (
    "SELECT number, entry, newest FROM S.ledger_write(%s, %s, %s::bigint, %s::int[], %s::bigint[], %s::text[],"
    " %s::smallint[], %s::bigint[], %s::bigint[], %s::text[])"
)
_PASSED = "SELECT gone, newest FROM S.ledger_passed(%s, %s, %s::bigint, %s::bigint)"
_WAITING = f"place IN ({LedgerPlace.PARKING:d}, {LedgerPlace.PARKED:d}, {LedgerPlace.RUNNING:d})"


class PostgresLedger:
    """The ledger in one schema."""

    def __init__(self, schema: PostgresSchema) -> None:
        self._schema = schema

    async def open(self, source: str, partition: str, epoch: int) -> builtins.list[LedgerEntry]:
        [(newest, entries)] = await self._schema.write(_OPEN, (source, partition, epoch), "the opening of a ledger")
        if newest != epoch:
            raise _stale(source, epoch, newest)
        return [_read(text) for text in entries]

    async def write(
        self, source: str, partition: str, changes: Sequence[Change], epoch: int | None
    ) -> builtins.list[LedgerEntry | None]:
        for before, after in changes:
            why = refusal(before, after, owner=epoch is not None)
            if why:
                raise InvalidRequest(f"source {source!r}, position {after.position}: {why}; nothing was written")
        if not changes:
            return []
        turn_of = {index: turn for turn, indexes in enumerate(rounds(changes), 1) for index in indexes}
        rows = await self._schema.write(
            _WRITE,
            (
                source,
                partition,
                epoch,
                numbers(turn_of[index] for index in range(len(changes))),
                numbers(after.position for _, after in changes),
                texts_or_none(None if before is None else entry_text(before) for before, _ in changes),
                numbers(int(after.place) for _, after in changes),
                numbers(after.n for _, after in changes),
                numbers(after.fence for _, after in changes),
                texts([entry_text(after) for _, after in changes]),
            ),
            "rows of failed items",
        )
        answers: builtins.list[LedgerEntry | None] = [after for _, after in changes]
        for number, text, newest in rows:
            if number < 0:
                raise _stale(source, epoch or 0, newest)
            answers[number] = None if text is None else _read(text)
        return answers

    async def passed(self, source: str, partition: str, epoch: int, position: int) -> int:
        [(gone, newest)] = await self._schema.write(
            _PASSED, (source, partition, epoch, position), "a checkpoint's rows"
        )
        if newest != epoch:
            raise _stale(source, epoch, newest)
        return int(gone)

    async def get(self, source: str, partition: str, positions: Sequence[int]) -> dict[int, LedgerEntry]:
        rows = await self._schema.read(
            "SELECT entry FROM S.ledger WHERE source = %s AND partition = %s AND position = ANY (%s::bigint[])",
            (source, partition, numbers(positions)),
            "rows of failed items",
        )
        entries = [_read(text) for (text,) in rows]
        return {entry.position: entry for entry in entries}

    async def list(self, source: str, limit: int, after: tuple[str, int] = ("", -1)) -> builtins.list[LedgerRow]:
        rows = await self._schema.read(
            "SELECT partition, entry FROM S.ledger WHERE source = %s AND (partition, position) > (%s, %s::bigint)"
            " ORDER BY partition, position LIMIT %s",
            (source, *after, limit),
            "rows of failed items",
        )
        return [LedgerRow(partition, _read(text)) for partition, text in rows]

    async def delayed(self, source: str) -> dict[str, Delayed]:
        rows = await self._schema.read(
            "SELECT partition, place, items FROM S.ledger_ended WHERE source = %s"
            f" UNION ALL SELECT partition, {LedgerPlace.PARKED:d}, count(*) FROM S.ledger"
            f" WHERE source = %s AND {_WAITING} GROUP BY partition",
            (source, source),
            "counts of failed items",
        )
        names = {LedgerPlace.PARKED: "waiting", LedgerPlace.DONE: "done", LedgerPlace.DEAD: "dead"}
        found: dict[str, Delayed] = {}
        for partition, place, items in rows:
            known, name = found.get(partition, Delayed()), names[LedgerPlace(place)]
            found[partition] = known._replace(**{name: getattr(known, name) + items})
        return found

    async def waiting(self, source: str, partition: str, first: int, end: int) -> int:
        [(rows,)] = await self._schema.read(
            "SELECT count(*) FROM S.ledger WHERE source = %s AND partition = %s AND position >= %s::bigint"
            f" AND position < %s::bigint AND {_WAITING}",
            (source, partition, first, end),
            "counts of failed items",
        )
        return int(rows)

    async def counts(self) -> dict[str, dict[str, int]]:
        rows = await self._schema.read(
            "SELECT source, place, count(*) FROM S.ledger GROUP BY source, place", (), "counts of failed items"
        )
        found: dict[str, dict[str, int]] = {}
        for source, place, count in rows:
            found.setdefault(source, {})[LedgerPlace(place).label] = count
        return found


def _read(text: str) -> LedgerEntry:
    return entry_of(json.loads(text))


def _stale(source: str, epoch: int, newest: int) -> StaleFence:
    return StaleFence(
        f"ledger of {source!r}: epoch {epoch} is over (the newest is {newest or 'none'}); nothing was written"
    )
