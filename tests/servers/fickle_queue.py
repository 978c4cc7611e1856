"""A queue whose store is away when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tailrace.model.errors import InvalidRequest, NotConnected, Overloaded
from tailrace.stores.queue.queue import NewItem, Queue, Submitted


class FickleQueue:
    """A queue that fails on demand. `trouble`: none | away (refuses at once) | cut (stores, and its answer is lost) |
    hangs (never answers) | full (refuses what is submitted). Payloads in `refused` it never takes; `stored` are those
    that it took, in order."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.trouble = "none"
        self.refused: set[bytes] = set()
        self.stored: list[bytes] = []
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def submit(self, items: Sequence[NewItem]) -> list[Submitted]:
        self.asked += 1
        await self._answers()
        if self.trouble == "full":
            raise Overloaded("the queue holds 9 workloads and takes at most 9", 5.0)
        if any(item.payload in self.refused for item in items):
            raise InvalidRequest("such a payload is not taken here")
        # Whoever does not wait for the answer any more stops nothing: a server goes on.
        self._storing = asyncio.create_task(self._store(items))
        self._storing.add_done_callback(lambda task: task.cancelled() or task.exception())
        answers = await asyncio.shield(self._storing)
        if self.trouble == "cut":
            raise NotConnected("the store's answer was lost")
        return answers

    async def _store(self, items: Sequence[NewItem]) -> list[Submitted]:
        answers = await self._queue.submit(items)
        self.stored += [item.payload for item, each in zip(items, answers, strict=True) if not each.duplicate]
        return answers

    async def status(self, ids: Sequence[str]) -> Any:
        await self._answers()
        return await self._queue.status(ids)

    async def counts(self) -> dict[str, int]:
        await self._answers()
        return await self._queue.counts()

    async def _answers(self) -> None:
        if self.trouble == "away":
            raise NotConnected("the store does not answer")
        if self.trouble == "hangs":
            await asyncio.Event().wait()
