"""Dead letters in Redis (the keys: `redis_scripts.py`). A filter is applied in this process, over pages of letters
without their payloads."""

from __future__ import annotations

import builtins
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import msgspec

from ...model.dead_letter import EVERY, DeadLetter, LetterFilter, LetterRoom, Moved, Past
from ...model.tries import Try
from ...model.workload import Kind
from ..redis.sort_keys import DIGITS, digits, packed, unpacked
from ..state.redis_server import StateServer
from .dead_letters import FULL_ROOMS, GONE, KEPT_PAST, MOST
from .redis_scripts import ADD, FIND, HELD, KEYS, MARK, PAYLOADS, PLACES, REMOVE

#: Letters of one script, and about how many bytes of payloads it has: a bound on the time that it holds the server.
STEP = 500
STEP_BYTES = 4 << 20

_ABOUT = "dead letters"
_encode = msgspec.json.Encoder().encode
_decode_past = msgspec.json.Decoder(Past).decode


class RedisDeadLetters:
    """Dead letters in the state on one server."""

    def __init__(self, server: StateServer, most: int = MOST) -> None:
        self._server = server
        self._most = most
        self._keys = [server.key("dead_letters", name) for name in KEYS]
        self._key = dict(zip(KEYS, self._keys, strict=True))

    async def _run(self, script: Any, *arguments: Any) -> Any:
        return await self._server.run(script, self._keys, *arguments, about=_ABOUT)

    async def add(self, letters: Sequence[DeadLetter]) -> builtins.list[str] | None:
        refused: builtins.list[str] = []
        step: builtins.list[Any] = []
        size = 0
        for place, letter in enumerate(letters, 1):
            kind = letter.kind
            step += (letter.id, kind.function, _place(letter), _text(letter), letter.payload, kind.tenant)
            size += len(letter.payload)
            if len(step) >= 6 * STEP or size >= STEP_BYTES or place == len(letters):
                refused += [id.decode() for id in await self._run(ADD, self._most, *step)]
                step, size = [], 0
        return refused or None

    async def rooms(self, of: Sequence[tuple[str, str]] = ()) -> builtins.list[LetterRoom]:
        if of:
            counts = await self._run(HELD, *(name for room in of for name in room))
            return [LetterRoom(room[0], room[1], int(n), self._most) for room, n in zip(of, counts, strict=True)]
        answer = await self._server.call("HGETALL", self._key["rooms"], about=_ABOUT)
        named = zip(answer[::2], map(int, answer[1::2]), strict=True)
        full = []
        for name, count in named:
            if count >= self._most:
                function, tenant = json.loads(name)
                full.append(LetterRoom(function, tenant, count, self._most))
        return sorted(full, key=lambda room: -room.held)[:FULL_ROOMS]

    async def list(self, which: LetterFilter, limit: int, after: int = 0, max_bytes: int = 0) -> list[DeadLetter]:
        found: builtins.list[DeadLetter] = []
        async for letter in self._find(which, after, limit):
            found.append(letter)
            if len(found) == limit:
                break
        return await self._with_payloads(found, max_bytes) if max_bytes and found else found

    async def _with_payloads(self, letters: Sequence[DeadLetter], max_bytes: int) -> builtins.list[DeadLetter]:
        """The first letters with their payloads, about so many bytes of them. Letters that were removed meanwhile are
        left out."""
        payloads = await self._run(PAYLOADS, max_bytes, *(letter.number for letter in letters))
        found = []
        for letter, payload in zip(letters, payloads, strict=False):
            if payload is not None:
                letter.payload = payload
                found.append(letter)
        return found

    async def _find(self, which: LetterFilter, after: int, limit: int) -> AsyncIterator[DeadLetter]:
        """Yields the letters that pass a filter, by number; each page is one script."""
        how, *more = _search(which)
        alone = which in (EVERY, LetterFilter(function=which.function))
        step = min(STEP, limit) if alone else STEP
        while True:
            answer = await self._run(FIND, how, after, step, *more)
            for number, text, past, moving in zip(*(answer[part::4] for part in range(4)), strict=True):
                letter = _letter(int(number), text, past)
                if _fulfils(letter, which) and moving >= which.moving:
                    yield letter
            if len(answer) < 4 * step:
                return
            after = int(answer[-4])

    async def get(self, id: str) -> DeadLetter | None:
        answer = await self._run(FIND, "ids", 0, 1, id)
        if not answer:
            return None
        found = await self._with_payloads([_letter(int(answer[0]), answer[1], answer[2])], 1)
        return found[0] if found else None

    async def mark(self, numbers: Sequence[int], moving: bool) -> None:
        for step in _steps(numbers):
            await self._run(MARK, int(moving), *step)

    async def moved(self, letters: Sequence[Moved], now: float) -> int:
        went = 0
        for step in _steps(letters):
            pasts = [part for each in step for part in (each.id, _encode(each.past))]
            going = [each.number for each in step if not each.stays]
            times = (repr(now), repr(now - KEPT_PAST))
            went += await self._run(REMOVE, GONE, *times, len(going), *going, *pasts)
        return went

    async def remove(self, numbers: Sequence[int]) -> int:
        went = 0
        for step in _steps(numbers):
            went += await self._run(REMOVE, GONE, 0, 0, len(step), *step)
        return went

    async def positions(self, tailer: str) -> dict[str, int]:
        answer = await self._server.call("HGETALL", self._key["ever"], about=_ABOUT)
        found: dict[str, int] = {}
        for member, count in zip(answer[::2], answer[1::2], strict=True):
            (own, partition), _ = unpacked(member, 2)
            if own == tailer and int(count) > 0:
                found[partition] = int(count)
        return found

    async def died(self, tailer: str, partition: str, first: int, end: int) -> int | None:
        known, *count = await self._run(PLACES, *_range(tailer, partition, first, end), 0)
        return int(count[0]) if known else None

    async def died_at(self, tailer: str, partition: str, first: int, end: int, limit: int) -> builtins.list[int] | None:
        known, *places = await self._run(PLACES, *_range(tailer, partition, first, end), limit)
        if not known:
            return None
        at = len(packed(tailer, partition))
        return sorted({int(member[at : at + DIGITS]) for members in places for member in members})[:limit]

    async def counts(self, which: LetterFilter = EVERY) -> dict[str, int]:
        if which == EVERY:
            answer = await self._server.call("HGETALL", self._key["counts"], about=_ABOUT)
            found = {name.decode(): int(count) for name, count in zip(answer[::2], answer[1::2], strict=True)}
        else:
            found = Counter([letter.kind.function async for letter in self._find(which, 0, STEP)])
        return dict(sorted(found.items()))

    async def count(self) -> int:
        return int(await self._server.call("HLEN", self._key["letters"], about=_ABOUT))


def _steps(of: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(of), STEP):
        yield of[first : first + STEP]


def _search(which: LetterFilter) -> tuple[str, ...]:
    """The arguments of FIND for a filter: by ids, by the mark of a redrive, by function, or all letters."""
    if which.ids:
        return ("ids", *dict.fromkeys(which.ids))
    if which.moving:
        return ("moving",)
    return ("function", which.function) if which.function else ("all",)


def _fulfils(letter: DeadLetter, which: LetterFilter) -> bool:
    """Whether a letter that FIND gave for a filter fulfils the filter's other conditions."""
    kind, tailers = letter.kind, {letter.tailer, letter.past.tailer if letter.past else letter.tailer}
    return (
        which.function in ("", kind.function)
        and (not which.tailer or which.tailer in tailers)
        and which.collection in ("", kind.collection)
        and which.tenant in ("", kind.tenant)
        and which.reason in letter.reason
        and letter.died_at >= which.since
        and (not which.until or letter.died_at < which.until)
        and letter.attempts >= which.attempts
        and letter.crashes >= which.crashes
        and letter.redrives >= which.redrives
    )


def _range(tailer: str, partition: str, first: int, end: int) -> tuple[bytes, bytes, bytes]:
    return packed(tailer, partition), digits(max(0, first)), digits(max(0, end))


def _place(letter: DeadLetter) -> bytes:
    return packed(letter.tailer, letter.partition) + digits(letter.position) if letter.position >= 0 else b""


def _text(letter: DeadLetter) -> str:
    kind, place = letter.kind, _place(letter).decode()
    named = (letter.id, kind.function, place, letter.tailer, int(kind.priority), kind.collection, kind.tenant)
    told = (letter.outcome, letter.reason, letter.attempts, letter.crashes, letter.first_seen, letter.died_at)
    return json.dumps(
        (*named, *told, letter.key, letter.headers, letter.progress, letter.partition, letter.position, letter.tries)
    )


def _letter(number: int, text: bytes, past: bytes) -> DeadLetter:
    id, function, _, tailer, priority, collection, tenant, *rest = json.loads(text)
    outcome, reason, attempts, crashes, first_seen, died_at, key, headers, progress, partition, position, tries = rest
    before = _decode_past(past) if past else None
    return DeadLetter(
        id,
        tailer,
        Kind(function, priority, collection, tenant),
        b"",
        outcome,
        reason,
        attempts,
        crashes,
        first_seen if before is None else before.first_seen,
        died_at,
        key,
        tuple((name, value) for name, value in headers),
        progress,
        partition,
        position,
        before,
        tuple(Try(*each) for each in tries),
        number,
    )
