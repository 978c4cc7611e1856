"""Which settlements share one write of a server: plain successes of few items each, of whatever claims, that come while
one is written or in the same moment. A commit costs one wait for the disk, however many ends it has.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

#: Items of a settlement that shares a write; a larger one is worth its own, and holds up nobody.
FEW = 64
#: Items of one shared write.
GROUP = 512


class Succeeded(NamedTuple):
    """Items of one claim that ended well."""

    fence: int
    ids: Sequence[str]


class Settlements:
    """`write` ends all of a group or none and answers of each what was refused; what it raises, every member is told.
    `run` carries work through, whoever waits for it."""

    def __init__(
        self,
        write: Callable[[Sequence[Succeeded]], Awaitable[list[list[str]]]],
        run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._write = write
        self._carry = run
        self._running: asyncio.Task[None] | None = None
        self._waiting: deque[tuple[Succeeded, asyncio.Future[list[str]]]] = deque()

    async def add(self, fence: int, ids: Sequence[str]) -> list[str]:
        """Ends these, with others; what was refused of them."""
        future: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._waiting.append((Succeeded(fence, ids), future))
        if self._running is None or self._running.done():
            self._running = self._carry(self._run())
        return await future

    async def _run(self) -> None:
        while self._waiting:
            group = [self._waiting.popleft()]
            count = len(group[0][0].ids)
            while self._waiting and (count := count + len(self._waiting[0][0].ids)) <= GROUP:
                group.append(self._waiting.popleft())
            try:
                refused = await self._write([each for each, _ in group])
            except Exception as error:
                for _, future in group:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), answer in zip(group, refused, strict=True):
                if not future.done():
                    future.set_result(answer)
