"""The check of a store's height (its high-water mark) before a tailer hands anything to a scheduler: a store that is
lower than the scheduler saw it was set back, and items that it gave in between may still run.

The check is made whenever a connection opens: a machine that is set back together with its memory goes on in the
middle, and notices only that its connections are gone.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from ..model.errors import TailraceError
from ..model.height import Height
from ..stores.heights import Heights
from .departures.durable import until_available


class HeightAsker(Protocol):
    """A session that asks its scheduler. Nothing is pushed in it from a connection's opening until `may_push`;
    `ask_height` sends the name of a store, and the answer comes to `HeightCheck.told`."""

    def ask_height(self, name: str) -> None: ...

    def may_push(self) -> None: ...


class HeightCheck:
    """The height check of one session. `store` is the kind of store behind its leases (stores/heights.py); `heights` is
    None if that store checks itself. `failing`: why the store cannot be asked; empty: it can."""

    def __init__(self, heights: Heights | None, store: str) -> None:
        self._heights = heights
        self._store = store
        self._session: HeightAsker | None = None
        self._opened = False  # a connection, of which nothing was asked yet
        self._answer: Height | None = None
        self._wake = asyncio.Event()
        self.failing = ""

    def opened(self, session: HeightAsker) -> bool:
        """Notes that a connection is up. Returns whether pushes have to wait for `may_push`."""
        self._session, self._opened, self._answer = session, True, None
        self._wake.set()
        return self._heights is not None

    def told(self, remembered: Height) -> None:
        """Takes the scheduler's answer: the highest number that it saw."""
        self._answer = remembered
        self._wake.set()

    async def run(self) -> None:
        """Asks and compares, for each connection. Raises TailraceError when the store was set back: items that this
        tailer has read and claimed of it may be running already."""
        while self._heights is not None:
            await self._wake.wait()
            self._wake.clear()
            if self._opened:
                self._opened = False
                await self._ask(self._heights)
            elif self._answer is not None:
                await self._compare(self._heights, self._answer)

    async def _ask(self, heights: Heights) -> None:
        name = await until_available(lambda: heights.name(self._store), self._fails)
        if self._opened or self._session is None:
            return
        if name:
            self._session.ask_height(name)
        else:
            self._session.may_push()

    async def _compare(self, heights: Heights, remembered: Height) -> None:
        if await until_available(lambda: heights.seen(self._store, remembered), self._fails):
            raise TailraceError(
                f"the {self._store}'s store was set back: the scheduler saw it give later numbers than it knows now; "
                "it hands nothing out until the leases of that time are over"
            )
        if not self._opened and self._session is not None:
            self._session.may_push()

    def _fails(self, why: str) -> None:
        self.failing = why
