"""Hints between nodes that something may be due, or was changed: no more than a reason to look at once.

Polling finds everything without them. One hint is sent at most every twentieth of a second, and stands for all that
happened meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable

from ..foundation.lifecycle import cancel
from ..model.errors import TailraceError
from ..model.linger import HINTS

#: Seconds until a broken connection is dialled again.
AGAIN = 5.0


class Hints(ABC):
    """Hints to other nodes and from them. `wake` is called for each hint of another node, and when hints may have been
    missed. `named` begins the names of its tasks; `broken` are the errors of the engine's client when a connection
    breaks. Without `on` no hint is sent or received.

    listening   set while hints are received
    """

    def __init__(self, named: str, wake: Callable[[], None], *broken: type[Exception], on: bool) -> None:
        self._named = named
        self._wake = wake
        self._broken: tuple[type[Exception], ...] = (TailraceError, OSError, *broken)
        self._on = on
        self._listener: asyncio.Task[None] | None = None
        self._teller: asyncio.Task[None] | None = None
        self._untold = False
        self.listening = asyncio.Event()

    @abstractmethod
    async def _send(self) -> None:
        """Sends a hint to all other nodes. Raises the errors of a store."""

    @abstractmethod
    async def _hear(self) -> None:
        """Listens on a connection of its own until that breaks; sets `listening` and wakes once it is connected."""

    def open(self) -> None:
        """Starts listening. Harmless when open."""
        if self._on and self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name=f"{self._named}-hints")

    async def close(self) -> None:
        """Stops listening and sending. Harmless when closed."""
        for task in (self._listener, self._teller):
            if task is not None:
                await cancel(task)
        self._listener = self._teller = None

    def tell(self) -> None:
        """Sends a hint soon: something may be due, or was changed, that other nodes do not know of."""
        if self._listener is None:
            return
        self._untold = True
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._tell(), name=f"{self._named}-hints-told")

    async def _tell(self) -> None:
        while self._untold:
            self._untold = False
            try:
                await self._send()
            except TailraceError:
                return  # nodes that miss the hint poll
            await asyncio.sleep(HINTS.seconds)

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(*self._broken):
                await self._hear()
            self.listening.clear()
            await asyncio.sleep(AGAIN)
