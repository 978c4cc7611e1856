"""Group commit of settlements: plain successes of few items share one write of a server, whichever claims they are
from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from .shared_writes import Load, SharedWrites

#: Most items of a settlement that shares a write. A larger one has a write of its own, and delays nobody.
FEW = 64
#: Most items of one shared write.
GROUP = Load(512)


class Succeeded(NamedTuple):
    """Items of one claim that succeeded."""

    fence: int
    ids: Sequence[str]


def settlements(
    write: Callable[[Sequence[Succeeded]], Awaitable[list[list[str]]]],
    run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
) -> SharedWrites[Succeeded, list[str]]:
    """Returns the shared writes of settlements. `write` ends all items of a group or none, and returns the refused ids
    of each; `run` starts a task that goes on even if its caller leaves."""
    return SharedWrites(write, lambda ended: Load(len(ended.ids)), GROUP, run)
