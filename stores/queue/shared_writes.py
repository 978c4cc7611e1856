"""Group commit: parts that come at about the same time share one write of a server. Parts that arrive during a write
wait for the next one, up to the bounds of a write. A commit costs one wait for the disk, however much is in it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ..refused import nothing_was_kept

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class Load(NamedTuple):
    """The size of one part, or the bound of one write."""

    items: int
    size: int = 0  # bytes


class SharedWrites(Generic[Part, Answer]):
    """Writes that several callers share.

    write  writes the parts of a group in the order in which they came, all or none, and answers each. If its error says
           that one part cannot be written, each part is written alone, so that only this one fails; others go to all
    load   the size of a part; a part larger than `most` has a write of its own
    run    starts a task that goes on even if its caller leaves
    """

    def __init__(
        self,
        write: Callable[[Sequence[Part]], Awaitable[Sequence[Answer]]],
        load: Callable[[Part], Load],
        most: Load,
        run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._write = write
        self._load = load
        self._most = most
        self._carry = run
        self._running: asyncio.Task[None] | None = None
        self._waiting: deque[tuple[Part, Load, asyncio.Future[Answer]]] = deque()

    async def add(self, part: Part) -> Answer:
        """Has a part written together with others, and returns its answer."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((part, self._load(part), future))
        if self._running is None or self._running.done():
            self._running = self._carry(self._run())
        return await future

    async def _run(self) -> None:
        while self._waiting:
            parts, futures = self._group()
            try:
                answers = await self._write(parts)
            except Exception as error:
                if len(parts) > 1 and nothing_was_kept(error):
                    await self._apart(parts, futures)
                else:
                    _fail(futures, error)
            else:
                _tell(futures, answers)

    async def _apart(self, parts: Sequence[Part], futures: Sequence[asyncio.Future[Answer]]) -> None:
        """Writes each part alone, in their order."""
        for part, future in zip(parts, futures, strict=True):
            try:
                answers = await self._write([part])
            except Exception as error:
                _fail([future], error)
            else:
                _tell([future], answers)

    def _group(self) -> tuple[list[Part], list[asyncio.Future[Answer]]]:
        part, (items, size), future = self._waiting.popleft()
        parts, futures = [part], [future]
        while self._waiting:
            part, load, future = self._waiting[0]
            items, size = items + load.items, size + load.size
            if items > self._most.items or size > self._most.size:
                break
            self._waiting.popleft()
            parts.append(part)
            futures.append(future)
        return parts, futures


def _tell(futures: Sequence[asyncio.Future[Answer]], answers: Sequence[Answer]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if not future.done():  # the caller may have left
            future.set_result(answer)


def _fail(futures: Sequence[asyncio.Future[Answer]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
