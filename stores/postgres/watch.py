"""Waiting for changes that other processes may make: a waiter looks at once when something changed here or a hint came,
else every second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...model.errors import Unavailable

T = TypeVar("T")

#: Seconds between looks that nobody asked for.
POLL = 1.0


class ChangeWatch:
    """Waiters, and the event that wakes them."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Has all waiters look: something may have changed."""
        self._event.set()
        self._event = asyncio.Event()

    async def until(self, look: Callable[[], Awaitable[T | None]]) -> T:
        """Calls `look` until it returns something, and returns that. It goes on while the store is away, so that a
        waiter loses nothing."""
        while True:
            event = self._event  # taken before looking: a change during the look is not missed
            try:
                if (found := await look()) is not None:
                    return found
            except Unavailable:
                pass
            try:
                async with asyncio.timeout(POLL):
                    await event.wait()
            except TimeoutError:
                pass
