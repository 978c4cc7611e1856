"""Submissions that arrive while one is being stored share the next transaction: a commit costs one wait for the disk,
however many rows it has."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from .queue import NewItem, Submitted

#: Items that share one transaction; a larger submission has one to itself.
GROUP = 1024
#: Bytes of payload that share one, but for a single larger submission.
BYTES = 8 << 20


class Submissions:
    """`store` keeps all of a group or none; what it raises, every member of the group is told."""

    def __init__(self, store: Callable[[Sequence[NewItem]], Awaitable[list[Submitted]]]) -> None:
        self._store = store
        self._waiting: deque[tuple[Sequence[NewItem], asyncio.Future[list[Submitted]]]] = deque()

    def add(self, items: Sequence[NewItem]) -> asyncio.Future[list[Submitted]]:
        """Has the items stored by the next `run`."""
        future: asyncio.Future[list[Submitted]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, future))
        return future

    async def run(self) -> None:
        """Stores what waits, until nothing does."""
        while self._waiting:
            group = [self._waiting.popleft()]
            count, size = len(group[0][0]), _size(group[0][0])
            while self._waiting:
                count, size = count + len(self._waiting[0][0]), size + _size(self._waiting[0][0])
                if count > GROUP or size > BYTES:
                    break
                group.append(self._waiting.popleft())
            try:
                answers = await self._store([item for items, _ in group for item in items])
            except Exception as error:
                for _, future in group:
                    if not future.done():
                        future.set_exception(error)
                continue
            begin = 0
            for items, future in group:
                if not future.done():
                    future.set_result(answers[begin : begin + len(items)])
                begin += len(items)


def _size(items: Sequence[NewItem]) -> int:
    return sum(len(item.payload) for item in items)
