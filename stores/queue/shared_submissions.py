"""Group commit of submissions: calls that arrive while one is being stored share the next transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from .queue import NewItem, Submitted
from .shared_writes import Load, SharedWrites

#: Most items and payload bytes of one transaction. A larger submission has a transaction of its own.
GROUP = Load(1024, 8 << 20)


def submissions(
    store: Callable[[Sequence[NewItem]], Awaitable[list[Submitted]]],
    run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
) -> SharedWrites[Sequence[NewItem], list[Submitted]]:
    """Returns the shared writes of submissions. `store` stores all items of a group or none; `run` starts a task that
    goes on even if its caller leaves."""

    async def write(group: Sequence[Sequence[NewItem]]) -> list[list[Submitted]]:
        stored = iter(await store([item for items in group for item in items]))
        return [[next(stored) for _ in items] for items in group]

    return SharedWrites(write, _load, GROUP, run)


def _load(items: Sequence[NewItem]) -> Load:
    return Load(len(items), sum(len(item.payload) for item in items))
