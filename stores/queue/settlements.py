"""Plain successes of few items, of whatever claims, share one write of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from .shared_writes import Load, SharedWrites

#: Items of a settlement that shares a write; a larger one is worth its own, and holds up nobody.
FEW = 64
#: Items of one shared write.
GROUP = Load(512)


class Succeeded(NamedTuple):
    """Items of one claim that ended well."""

    fence: int
    ids: Sequence[str]


def settlements(
    write: Callable[[Sequence[Succeeded]], Awaitable[list[list[str]]]],
    run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
) -> SharedWrites[Succeeded, list[str]]:
    """`write` ends all of a group or none, and answers of each what was refused."""
    return SharedWrites(write, lambda ended: Load(len(ended.ids)), GROUP, run)
