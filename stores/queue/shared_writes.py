"""Shared writes (group commit): what comes at about the same time shares one write of a server. What waits while one is
written, as far as the bounds of a write go. A commit costs one wait for the disk, however much is in it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ..refused import nothing_was_kept

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class Load(NamedTuple):
    """Of one part, or of a write at most."""

    items: int
    size: int = 0  # bytes


class SharedWrites(Generic[Part, Answer]):
    """Writes that share. `write` takes the parts of a group, in the order in which they came, keeps all of them or
    none, and answers each. When it raises what says that one of them cannot be written, each has a write to itself, so
    that this one fails alone; what else it raises, each of them is told. `load` says how much a part is; one that is
    more than `most` by itself has a write to itself. `run` carries work through, whoever waits for it."""

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
        """Has it written, with others; its answer."""
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
        """One after the other, in their order."""
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
        if not future.done():  # who waited may have left
            future.set_result(answer)


def _fail(futures: Sequence[asyncio.Future[Answer]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
