"""Writes that must be durable before an item counts as settled: batches, one at a time, tried until they succeed.

While one write is under way more items gather, so writes grow under load and an idle one goes at once. Where nobody
waits for an item, more gather for a moment behind each write: a write of one costs nearly what one of fifty does.
Nothing here is bounded by itself: every item still occupies its tailer's window.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from ...model.backoff import STORE, Backoff, Pauses
from ...model.errors import TailraceError, Unavailable
from ...stores.dead_letters.dead_letters import LetterKeeping
from ..rules.departure_linger import gathers
from ..rules.letter_waits import LOOK, K, LetterWaits

T = TypeVar("T")

#: A write takes at most so many items, and about so many bytes.
BATCH_ITEMS = 1024
BATCH_BYTES = 4 << 20


async def until_available(
    call: Callable[[], Awaitable[T]], failing: Callable[[str], None], pauses: Pauses = STORE
) -> T:
    """Repeats a call, with pauses, until it answers. `failing` hears why it failed, "" when it no longer does."""
    backoff = Backoff(*pauses, random.random)
    while True:
        try:
            answer = await call()
        except Unavailable as error:
            failing(str(error) or type(error).__name__)
            await asyncio.sleep(backoff.pause())
        else:
            failing("")
            return answer


async def unless_refused(
    call: Callable[[], Awaitable[T | None]], failing: Callable[[str], None], pause: float
) -> T | None:
    """Calls once; answers None after a pause when the call is refused for now, such as by a full disk: the caller asks
    again, for what is wanted then."""
    try:
        answer = await call()
    except Unavailable as error:
        failing(str(error) or type(error).__name__)
        await asyncio.sleep(pause)
        return None
    failing("")
    return answer


class DurableWriter(Generic[T]):
    """Items on their way into a store; `done` gets each batch once it is durable. Behind each write more items gather
    (`gathering`; rules/departure_linger.py says for how long), unless a batch is there. `why` is the reason why
    writing fails."""

    def __init__(
        self,
        write: Callable[[list[T]], Awaitable[object]],
        done: Callable[[list[T]], None],
        *,
        gathering: bool = False,
        pauses: Pauses = STORE,
    ) -> None:
        self._write = write
        self._pauses = pauses
        self._done = done
        self._gathering = gathering
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0  # of `_items`
        self._soonest = math.inf  # the shortest time until something of it is due
        self._awaited = False  # somebody waits for something of it
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()  # set when gathering items may wait less than they did
        self._writing: list[T] = []
        self.why = ""

    def __len__(self) -> int:
        return len(self._items) + len(self._writing)

    def __iter__(self) -> Iterator[T]:
        """Yields every item that is not durable yet."""
        yield from self._writing
        for item, _ in self._items:
            yield item

    def add(self, item: T, size: int, due_in: float = math.inf, *, awaited: bool = False) -> None:
        """Takes an item of so many bytes, which is due again in so many seconds. `awaited`: nothing gathers while it is
        here."""
        if not self._items:
            self._wake.set()
        self._items.append((item, size))
        self._bytes += size
        if awaited:
            self._awaited = True
            self._hurry.set()
        if due_in < self._soonest:
            self._soonest = due_in
            self._hurry.set()
        elif len(self._items) == BATCH_ITEMS:
            self._hurry.set()

    async def run(self) -> None:
        """Writes for ever. Raises every error of the store, except that it is unavailable."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._items:
                self._writing = batch = self._next()
                await until_available(partial(self._write, batch), self._failing, self._pauses)
                self._writing = []
                self._done(batch)
                if self._gathering:
                    await self._gather(len(batch))

    async def _gather(self, written: int) -> None:
        """Lets more come behind a write of so many."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while len(self._items) < BATCH_ITEMS and not self._awaited:
            rest = gathers(written, self._soonest).rest(began, loop.time())
            if rest <= 0:
                return
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await self._hurry.wait()

    def _next(self) -> list[T]:
        batch: list[tuple[T, int]] = []
        if len(self._items) <= BATCH_ITEMS and self._bytes <= BATCH_BYTES:
            batch.extend(self._items)
            self._items.clear()
        left = BATCH_BYTES
        while self._items and len(batch) < BATCH_ITEMS and left > 0:
            batch.append(self._items.popleft())
            left -= batch[-1][1]
        self._bytes -= sum([size for _, size in batch])
        if not self._items:
            self._soonest, self._awaited = math.inf, False
        return [item for item, _ in batch]

    def _failing(self, why: str) -> None:
        self.why = why


async def look_for_room(
    letters: LetterKeeping,
    waits: LetterWaits[K],
    some: asyncio.Event,
    go_on: Callable[[Sequence[K]], Awaitable[None]],
) -> None:
    """Has items go on, for ever, when there is room for their letters; `some` is set when there may be some that
    wait."""
    while True:
        await some.wait()
        some.clear()
        while waits:
            await asyncio.sleep(LOOK)
            with contextlib.suppress(TailraceError):  # the store is away: it is asked again
                for room in await letters.rooms(waits.asked()) if waits else ():
                    await go_on(waits.free((room.function, room.tenant), room.left))
