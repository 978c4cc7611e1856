"""Nodes tell each other that something may be due, or was changed: a hint and nothing more.

Polling finds everything without it. A hint is sent at most every twentieth of a second, and what was told meanwhile
goes in one.
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
    """Hints of other nodes, heard and told. `wake` is called for each hint of another node, and when hints may have
    been missed. Tasks are `named` by their engine; `broken` is what its client raises when a connection breaks. Not
    `on`: nothing is told, nothing heard.

    listening   set while hints are heard
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
        """Tells all other nodes. Raises what a store raises."""

    @abstractmethod
    async def _hear(self) -> None:
        """Listens by a connection of its own until that breaks; sets `listening` and wakes once it does."""

    def open(self) -> None:
        """Listens from now on. Harmless when open."""
        if self._on and self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name=f"{self._named}-hints")

    async def close(self) -> None:
        """Listens and tells no more. Harmless when closed."""
        for task in (self._listener, self._teller):
            if task is not None:
                await cancel(task)
        self._listener = self._teller = None

    def tell(self) -> None:
        """Something may be due that other nodes do not know of."""
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
                return  # who does not hear it polls
            await asyncio.sleep(HINTS.seconds)

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(*self._broken):
                await self._hear()
            self.listening.clear()
            await asyncio.sleep(AGAIN)
