"""Replays in PostgreSQL: a row each. Few are made, so a row is one text; a move compares it as it was read."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from ...model.errors import InvalidRequest, NotConnected
from ...model.replay import OVER, Replay, ReplayState, moved
from ..postgres.arrays import shown
from ..postgres.schema import PostgresSchema
from .replays import KEPT

#: Times that a move is tried on a row that other processes move.
TRIES = 10

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Replay).decode


class PostgresReplays:
    """Replays in one schema."""

    def __init__(self, schema: PostgresSchema) -> None:
        self._schema = schema

    async def add(self, replay: Replay) -> Replay:
        kept = replace(replay, who=shown(replay.who), why=shown(replay.why))
        rows = await self._schema.write(
            "SELECT number FROM S.replays_add(%s::bigint, %s) AS number", (KEPT, _encode(kept).decode()), "a replay"
        )
        return replace(kept, number=int(rows[0][0]))

    async def get(self, number: int) -> Replay | None:
        found = await self._read(number)
        return None if found is None else found[1]

    async def _read(self, number: int) -> tuple[str, Replay] | None:
        rows = await self._schema.read("SELECT replay FROM S.replays WHERE number = %s", (number,), "a replay")
        return (rows[0][0], replace(_decode(rows[0][0]), number=number)) if rows else None

    async def list(self, limit: int, going: bool = False) -> builtins.list[Replay]:
        rows = await self._schema.read(
            "SELECT number, replay FROM S.replays WHERE NOT (is_over AND %s::boolean) ORDER BY number DESC LIMIT %s",
            (going, limit),
            "replays",
        )
        return [replace(_decode(text), number=number) for number, text in rows]

    async def answer(self, answer: Replay) -> Replay:
        answer = replace(answer, detail=shown(answer.detail))
        for _ in range(TRIES):
            found = await self._read(answer.number)
            if found is None:
                raise _unknown(answer.number)
            text, before = found
            if before.state is not ReplayState.ASKED:
                return before
            if await self._put(text, answer):
                return answer
        raise _busy(answer.number)

    async def move(self, number: int, state: ReplayState, at: float, counts: Mapping[str, int]) -> Replay:
        for _ in range(TRIES):
            found = await self._read(number)
            if found is None:
                raise _unknown(number)
            text, before = found
            after = moved(before, state, at, counts)
            if after is before:
                return before
            if await self._put(text, after):
                return after
        raise _busy(number)

    async def _put(self, text: str, after: Replay) -> bool:
        """Replaces the row that was read as `text`. False: it is another by now, and nothing was changed."""
        rows = await self._schema.read(
            "UPDATE S.replays SET is_over = %s, replay = %s WHERE number = %s AND replay = %s RETURNING number",
            (after.state in OVER, _encode(after).decode(), after.number, text),
            "a replay",
        )
        return bool(rows)


def _unknown(number: int) -> InvalidRequest:
    return InvalidRequest(f"there is no replay {number}: `tailrace replay list` shows all replays")


def _busy(number: int) -> NotConnected:
    return NotConnected(f"the replay {number} is being changed by other processes; try again")
