"""The ledger in Redis: a batch is one script, whatever its size (the keys: `redis_scripts.py`)."""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from typing import Any

from ...model.errors import InvalidRequest, StaleFence
from ...model.ledger import TERMINAL
from ..redis.sort_keys import LAST, digits, packed, unpacked
from ..state.redis_server import StateServer
from .ledger import Change, Delayed, LedgerEntry, LedgerPlace, LedgerRow
from .lifecycle import refusal
from .redis_scripts import COUNTED, OPEN, PAGE, PASSED, WRITE, WRITE_NEW
from .text import entry_of, entry_text

#: Rows that one script reads or sweeps: a bound on the time that it holds the server.
STEP = 1000
_WAITING = (LedgerPlace.PARKING, LedgerPlace.PARKED, LedgerPlace.RUNNING)


class RedisLedger:
    """The ledger in the state on one server."""

    def __init__(self, server: StateServer) -> None:
        self._server = server
        self._heads, self._places = server.key("ledger"), server.key("ledger", "places")

    def _key(self, what: str, source: str) -> str:
        return self._server.key("ledger", what, source)

    async def _run(self, script: Any, source: str, keys: Sequence[str], *arguments: Any) -> builtins.list[Any]:
        answer: builtins.list[Any] = await self._server.run(script, keys, *arguments, about=f"ledger of {source!r}")
        return answer

    async def open(self, source: str, partition: str, epoch: int) -> builtins.list[LedgerEntry]:
        opened, answer = await self._run(OPEN, source, [self._heads], packed(source, partition), epoch)
        if not opened:
            raise _stale(source, epoch, answer)
        # From now on only copies write, and they make no rows: so reading page by page finds all of them.
        begin, found = packed(partition), builtins.list[LedgerEntry]()
        low, high = b"[" + begin + answer, b"(" + begin + LAST
        while True:
            page = await self._page(source, low, high, STEP)
            found += [entry for _, entry in page]
            if len(page) < STEP:
                return found
            low = b"(" + page[-1][0]

    async def write(
        self, source: str, partition: str, changes: Sequence[Change], epoch: int | None
    ) -> builtins.list[LedgerEntry | None]:
        if not changes:
            return []
        arguments: builtins.list[Any] = [packed(source, partition), "" if epoch is None else epoch, packed(partition)]
        for before, after in changes:
            why = refusal(before, after, owner=epoch is not None)
            if why:
                raise InvalidRequest(f"source {source!r}, position {after.position}: {why}; nothing was written")
            ends = after.place in TERMINAL and before is not None and before.n > 0
            former = ("", 0) if before is None else (entry_text(before), int(before.place))
            arguments += (digits(after.position), former[0], entry_text(after), former[1], int(after.place), int(ends))
        rows = [self._key(what, source) for what in ("rows", "waiting", "others", "ended")]
        script = WRITE_NEW if any(before is None for before, _ in changes) else WRITE
        written, *answer = await self._run(script, source, [self._heads, *rows, self._places], *arguments)
        if not written:
            raise _stale(source, epoch or 0, answer[0])
        return [
            after if row == 1 else entry_of(json.loads(row)) if row else None
            for (_, after), row in zip(changes, answer, strict=True)
        ]

    async def passed(self, source: str, partition: str, epoch: int, position: int) -> int:
        keys = [self._heads, self._key("rows", source), self._key("others", source), self._places]
        head, begin = packed(source, partition), packed(partition)
        went = 0
        while True:
            done, answer = await self._run(PASSED, source, keys, head, epoch, digits(max(0, position)), begin, STEP)
            if not done:
                raise _stale(source, epoch, answer)
            went += int(answer)
            if answer < STEP:
                return went

    async def get(self, source: str, partition: str, positions: Sequence[int]) -> dict[int, LedgerEntry]:
        if not positions:
            return {}
        begin, rows = packed(partition), self._key("rows", source)
        fields = [begin + digits(position) for position in positions if position >= 0]
        answer = await self._server.call("HMGET", rows, *fields, about=f"ledger of {source!r}")
        entries = [entry_of(json.loads(row)) for row in answer if row is not None]
        return {entry.position: entry for entry in entries}

    async def list(self, source: str, limit: int, after: tuple[str, int] = ("", -1)) -> builtins.list[LedgerRow]:
        partition, position = after
        low = b"[" + packed(partition) if position < 0 else b"(" + packed(partition) + digits(position)
        page = await self._page(source, low, b"+", limit)
        return [LedgerRow(unpacked(member, 1)[0][0], entry) for member, entry in page]

    async def _page(self, source: str, low: bytes, high: bytes, limit: int) -> builtins.list[tuple[bytes, LedgerEntry]]:
        """The first rows between two members, in their order, with their members."""
        keys = [self._key(what, source) for what in ("rows", "waiting", "others")]
        answer = await self._run(PAGE, source, keys, low, high, limit)
        found = sorted(zip(answer[::2], answer[1::2], strict=True))[:limit]
        return [(member, entry_of(json.loads(row))) for member, row in found]

    async def delayed(self, source: str) -> dict[str, Delayed]:
        places, ended = await self._run(COUNTED, source, [self._places, self._key("ended", source)])
        found: dict[str, Delayed] = {}
        for own, partition, place, items in _counted(places):
            if own == source and place in _WAITING:
                known = found.get(partition, Delayed())
                found[partition] = known._replace(waiting=known.waiting + items)
        for member, items in zip(ended[::2], ended[1::2], strict=True):
            (partition,), ended_as = unpacked(member, 1)
            known = found.get(partition, Delayed())
            name = "done" if int(ended_as) == LedgerPlace.DONE else "dead"
            found[partition] = known._replace(**{name: int(items)})
        return found

    async def waiting(self, source: str, partition: str, first: int, end: int) -> int:
        begin = packed(partition)
        bounds = (b"[" + begin + digits(max(0, first)), b"(" + begin + digits(max(0, end)))
        return int(await self._server.call("ZLEXCOUNT", self._key("waiting", source), *bounds))

    async def counts(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for source, _, place, items in _counted(await self._server.call("HGETALL", self._places)):
            places = found.setdefault(source, {})
            places[place.label] = places.get(place.label, 0) + items
        return found


def _counted(places: Sequence[bytes]) -> builtins.list[tuple[str, str, LedgerPlace, int]]:
    """Source, partition, place and number of rows of each counter."""
    found = []
    for member, items in zip(places[::2], places[1::2], strict=True):
        (source, partition), place = unpacked(member, 2)
        found.append((source, partition, LedgerPlace(int(place)), int(items)))
    return found


def _stale(source: str, epoch: int, newest: bytes) -> StaleFence:
    return StaleFence(
        f"ledger of {source!r}: epoch {epoch} is over (the newest is {newest.decode()}); nothing was written"
    )
