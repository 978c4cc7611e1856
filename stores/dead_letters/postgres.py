"""Dead letters in PostgreSQL: one row each, in the order in which they died."""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ...model.dead_letter import EVERY, DeadLetter, LetterFilter, LetterRoom, Moved, Past
from ...model.tries import Try
from ...model.workload import Kind
from ..postgres.arrays import blobs, floats, shown, texts
from ..postgres.arrays import numbers as whole
from ..postgres.schema import PostgresSchema
from .dead_letters import FULL_ROOMS, GONE, KEPT_PAST, MOST
from .sql_filter import EngineConditions, condition

_KEEP = (
    "SELECT refused FROM S.dead_letters_keep(%s::bigint, %s::text[], %s::text[], %s::text[], %s::int[], %s::text[],"
    " %s::text[], %s::text[], %s::text[], %s::int[], %s::int[], %s::float8[], %s::float8[], %s::text[], %s::text[],"
    " %s::text[], %s::text[], %s::bigint[], %s::text[], %s::bytea[]) AS refused"
)
_MOVED = (
    "SELECT gone FROM S.dead_letters_moved(%s::bigint[], %s::bigint, %s::text[], %s::text[], %s::int[], %s::text[],"
    " %s::float8, %s::float8) AS gone"
)
_AT = "S.dead_letters_at(%s, %s, %s::bigint, %s::bigint, %s::bigint)"
_COLUMNS = (
    "l.number, l.id, l.tailer, function, priority, collection, tenant, outcome, reason, attempts, crashes, first_seen,"
    " died_at, key, headers, progress, partition, position, tries, past"
)
_FROM = " FROM S.dead_letters AS l LEFT JOIN S.redriven AS r ON r.id = l.id"

_encode = msgspec.json.Encoder().encode
_decode_past = msgspec.json.Decoder(Past).decode


class PostgresDeadLetters:
    """Dead letters in one schema."""

    def __init__(self, schema: PostgresSchema, most: int = MOST) -> None:
        self._schema = schema
        self._most = most

    async def add(self, letters: Sequence[DeadLetter]) -> builtins.list[str] | None:
        last = list({letter.id: letter for letter in letters}.values())
        if not last:
            return None
        [(refused,)] = await self._schema.write(_KEEP, (self._most, *_columns(last)), "dead letters")
        return [str(id) for id in refused] or None

    async def rooms(self, of: Sequence[tuple[str, str]] = ()) -> builtins.list[LetterRoom]:
        if of:
            rows = await self._schema.read(
                "SELECT g.f, g.t, coalesce(r.items, 0)"
                " FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS g (f, t, o)"
                " LEFT JOIN S.dead_letter_rooms AS r ON r.function = g.f AND r.tenant = g.t ORDER BY g.o",
                (texts([function for function, _ in of]), texts([tenant for _, tenant in of])),
                "dead letters",
            )
        else:
            rows = await self._schema.read(
                "SELECT function, tenant, items FROM S.dead_letter_rooms WHERE items >= %s"
                " ORDER BY items DESC LIMIT %s",
                (self._most, FULL_ROOMS),
                "dead letters",
            )
        return [LetterRoom(function, tenant, int(held), self._most) for function, tenant, held in rows]

    async def list(self, which: LetterFilter, limit: int, after: int = 0, max_bytes: int = 0) -> list[DeadLetter]:
        where, values = _condition(which)
        text = f"SELECT {_COLUMNS}, payload{_FROM} WHERE l.number > %s{where} ORDER BY l.number LIMIT %s"
        if max_bytes:  # a window of sizes keeps what is too much on the server
            sized = f"SELECT *, sum(octet_length(payload)) OVER (ORDER BY number) AS size FROM ({text}) AS page"
            first = f"row_number() OVER (ORDER BY number) = 1 AS is_first FROM ({sized}) AS sized"
            text = f"SELECT * FROM (SELECT *, {first}) AS cut WHERE is_first OR size <= {max_bytes:d} ORDER BY number"
        else:
            text = text.replace(", payload FROM", ", ''::bytea FROM")
        rows = await self._schema.read(text, (after, *values, limit), "dead letters")
        return [_letter(row[: _PAYLOAD + 1]) for row in rows]

    async def get(self, id: str) -> DeadLetter | None:
        rows = await self._schema.read(f"SELECT {_COLUMNS}, payload{_FROM} WHERE l.id = %s", (id,), "a dead letter")
        return _letter(rows[0]) if rows else None

    async def mark(self, numbers: Sequence[int], moving: bool) -> None:
        await self._schema.write(
            "SELECT 1 FROM S.dead_letters_mark(%s::bigint[], %s)", (whole(numbers), moving), "a redrive"
        )

    async def moved(self, letters: Sequence[Moved], now: float) -> int:
        new = {each.id: each for each in letters}
        arguments = (
            whole(each.number for each in letters if not each.stays),
            GONE,
            texts(list(new)),
            texts([each.past.tailer for each in new.values()]),
            whole(each.past.redrives for each in new.values()),
            texts([_encode(each.past).decode() for each in new.values()]),
            now,
            KEPT_PAST,
        )
        [(gone,)] = await self._schema.write(_MOVED, arguments, "a redrive")
        return int(gone)

    async def remove(self, numbers: Sequence[int]) -> int:
        [(gone,)] = await self._schema.write(
            "SELECT gone FROM S.dead_letters_forget(%s::bigint[], %s::bigint) AS gone",
            (whole(numbers), GONE),
            "a purge",
        )
        return int(gone)

    async def positions(self, tailer: str) -> dict[str, int]:
        rows = await self._schema.read(
            "SELECT partition, sum(items)::bigint FROM ("
            " SELECT partition, count(*) AS items FROM S.dead_letters WHERE tailer = %s AND position IS NOT NULL"
            " GROUP BY partition"
            " UNION ALL SELECT partition, count(*) FROM S.dead_letters_gone WHERE tailer = %s GROUP BY partition"
            " UNION ALL SELECT partition, items FROM S.dead_letters_folded WHERE tailer = %s) AS known"
            " GROUP BY partition",
            (tailer, tailer, tailer),
            "dead letters",
        )
        return {partition: int(items) for partition, items in rows}

    async def died(self, tailer: str, partition: str, first: int, end: int) -> int | None:
        [(count,)] = await self._schema.read(
            f"SELECT cardinality({_AT})", (tailer, partition, first, end, None), "dead letters"
        )
        return None if count is None else int(count)

    async def died_at(self, tailer: str, partition: str, first: int, end: int, limit: int) -> builtins.list[int] | None:
        [(found,)] = await self._schema.read(f"SELECT {_AT}", (tailer, partition, first, end, limit), "dead letters")
        return None if found is None else [int(each) for each in found]

    async def counts(self, which: LetterFilter = EVERY) -> dict[str, int]:
        where, values = _condition(which)
        rows = await self._schema.read(
            f"SELECT function, count(*){_FROM} WHERE true{where} GROUP BY function ORDER BY function"
            if where
            else "SELECT function, sum(items) FROM S.dead_letter_rooms GROUP BY function ORDER BY function",
            values,
            "dead letters",
        )
        return {function: int(count) for function, count in rows}

    async def count(self) -> int:
        [(count,)] = await self._schema.read(
            "SELECT coalesce(sum(items), 0) FROM S.dead_letter_rooms", (), "dead letters"
        )
        return int(count)


def _condition(which: LetterFilter) -> tuple[str, list[Any]]:
    own = EngineConditions(
        ids=("l.id = ANY (?::text[])", texts(list(which.ids))),
        reason=("strpos(reason, ?) > 0", shown(which.reason)),
        moving="moving",
        mark="%s",
    )
    return condition(which, own)


def _columns(letters: Sequence[DeadLetter]) -> tuple[str, ...]:
    kinds = [letter.kind for letter in letters]
    return (
        texts([letter.id for letter in letters]),
        texts([letter.tailer for letter in letters]),
        texts([kind.function for kind in kinds]),
        whole(int(kind.priority) for kind in kinds),
        texts([kind.collection for kind in kinds]),
        texts([kind.tenant for kind in kinds]),
        texts([letter.outcome for letter in letters]),
        texts([shown(letter.reason) for letter in letters]),
        whole(letter.attempts for letter in letters),
        whole(letter.crashes for letter in letters),
        floats(letter.first_seen for letter in letters),
        floats(letter.died_at for letter in letters),
        texts([shown(letter.key) for letter in letters]),
        texts([json.dumps(letter.headers) for letter in letters]),
        texts([shown(letter.progress) for letter in letters]),
        texts([letter.partition if letter.position >= 0 else "" for letter in letters]),
        whole(letter.position if letter.position >= 0 else None for letter in letters),
        texts([json.dumps(letter.tries) for letter in letters]),
        blobs([letter.payload for letter in letters]),
    )


#: The payload's place in a row.
_PAYLOAD = 20


def _letter(row: Sequence[Any]) -> DeadLetter:
    number, id, tailer, function, priority, collection, tenant, *rest, partition, position, tries, past, payload = row
    outcome, reason, attempts, crashes, first_seen, died_at, key, headers, progress = rest
    before = None if past is None else _decode_past(past)
    return DeadLetter(
        id,
        tailer,
        Kind(function, priority, collection, tenant),
        bytes(payload),
        outcome,
        reason,
        attempts,
        crashes,
        first_seen if before is None else before.first_seen,
        died_at,
        key,
        tuple((name, value) for name, value in json.loads(headers)),
        progress,
        partition,
        -1 if position is None else position,
        before,
        tuple(Try(*each) for each in json.loads(tries)),
        number,
    )
