"""Checkpoints in Redis: each write is one script, fenced by the epoch in it (the keys: `redis_scripts.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ...model.errors import StaleFence
from ..redis.sort_keys import DIGITS, LAST, digits, packed
from ..state.redis_server import StateServer
from .checkpoints import MOST, Ending, Mark
from .merge import fewer
from .redis_scripts import COMMIT, ENDINGS, OPEN, THIN

_LENGTH = 10


class RedisCheckpoints:
    """Checkpoints in the state on one server."""

    def __init__(self, server: StateServer) -> None:
        self._server = server
        self._epochs = server.key("checkpoints")

    def _keys(self, source: str) -> tuple[str, str, str]:
        marks, endings = (self._server.key("checkpoints", what, source) for what in ("marks", "endings"))
        return self._epochs, marks, endings

    async def open(self, source: str, epoch: int) -> dict[str, Mark]:
        keys = self._keys(source)[:2]
        opened, answer = await self._server.run(OPEN, keys, source, epoch, about=f"source {source!r}")
        if not opened:
            raise _stale(source, epoch, answer)
        return _marks(answer)

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        arguments: list[Any] = [source, epoch, len(marks)]
        for partition, mark in marks.items():
            arguments += (partition, packed(partition), _packed(mark), len(mark.endings))
            for ending in mark.endings:
                arguments += (digits(ending.first), digits(ending.last), json.dumps(ending.counts))
        keys = self._keys(source)
        done, *answer = await self._server.run(COMMIT, keys, *arguments, about=f"source {source!r}")
        if not done:
            raise _stale(source, epoch, answer[0])
        for partition, count in zip(marks, answer, strict=True):
            if count > 2 * MOST:
                await self._thin(keys[2], packed(partition), count - MOST // 2)

    async def _thin(self, key: str, begin: bytes, count: int) -> None:
        """Merges the oldest `count` endings into fewer. When another process changed them meanwhile nothing is done:
        the next commit tries again."""
        old = await self._server.call("ZRANGEBYLEX", key, b"[" + begin, b"(" + begin + LAST, "LIMIT", 0, count)
        few = fewer([_ending(member, begin) for member in old], MOST // 2)
        members = [begin + digits(each.first) + digits(each.last) + json.dumps(each.counts).encode() for each in few]
        await self._server.run(THIN, [key], old[0], old[-1], len(old), *members)

    async def load(self, source: str) -> dict[str, Mark]:
        return _marks(await self._server.call("HGETALL", self._keys(source)[1], about=f"source {source!r}"))

    async def endings(self, source: str, partition: str, first: int, end: int) -> list[Ending]:
        begin = packed(partition)
        arguments = (begin, digits(max(0, first)), digits(max(0, end)))
        answer = await self._server.run(ENDINGS, self._keys(source)[2:], *arguments, about=f"source {source!r}")
        return [ending for ending in (_ending(member, begin) for member in answer) if ending.last >= first]

    async def forget(self, source: str) -> None:
        await self._server.call("UNLINK", *self._keys(source)[1:], about=f"source {source!r}")


def _packed(mark: Mark) -> bytes:
    length = b"%010d" % len(mark.ahead)
    return digits(mark.position) + digits(mark.handed_out) + length + mark.ahead + mark.book


def _marks(answer: Sequence[bytes]) -> dict[str, Mark]:
    return {partition.decode(): _mark(value) for partition, value in zip(answer[::2], answer[1::2], strict=True)}


def _mark(value: bytes) -> Mark:
    ends = (0, DIGITS, 2 * DIGITS, 2 * DIGITS + _LENGTH)
    position, handed_out, length = (int(value[begin:end]) for begin, end in pairwise(ends))
    ahead, book = value[ends[-1] : ends[-1] + length], value[ends[-1] + length :]
    return Mark(position, ahead, handed_out, book)


def _ending(member: bytes, begin: bytes) -> Ending:
    at = len(begin)
    counts = json.loads(member[at + 2 * DIGITS :])
    first, last = int(member[at : at + DIGITS]), int(member[at + DIGITS : at + 2 * DIGITS])
    return Ending(first, last, {int(fate): count for fate, count in counts.items()})


def _stale(source: str, epoch: int, newest: bytes) -> StaleFence:
    return StaleFence(
        f"source {source!r}: epoch {epoch} is over (the newest is {newest.decode()}); nothing was written"
    )
