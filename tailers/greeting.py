"""Before a tailer hands anything to a scheduler, that one says how high it saw the store: one that was set back since
holds off, as what it gave then may still run.

Asked whenever a connection opens: a machine that is set back with its memory goes on in the middle, and notices only
that its connections are gone.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from ..model.errors import TailraceError
from ..model.height import Height
from ..stores.heights import Heights
from .departures.durable import until_available


class Greeted(Protocol):
    """A session. Nothing is pushed in it from a connection's opening until `may_push`; `ask_height` sends the name of a
    store, and the answer comes to `told`."""

    def ask_height(self, name: str) -> None: ...

    def may_push(self) -> None: ...


class Greeting:
    """The greeting of one session. `store` is what stands behind its leases (stores/heights.py), and `heights` None if
    that looks after itself. `failing`: why the store cannot be asked; empty: it can."""

    def __init__(self, heights: Heights | None, store: str) -> None:
        self._heights = heights
        self._store = store
        self._session: Greeted | None = None
        self._opened = False  # a connection, of which nothing was asked yet
        self._answer: Height | None = None
        self._wake = asyncio.Event()
        self.failing = ""

    def opened(self, session: Greeted) -> bool:
        """A connection is up. Whether it will be told when it may push."""
        self._session, self._opened, self._answer = session, True, None
        self._wake.set()
        return self._heights is not None

    def told(self, remembered: Height) -> None:
        """The scheduler's answer."""
        self._answer = remembered
        self._wake.set()

    async def run(self) -> None:
        """Asks and compares. Raises TailraceError when the store was set back: what this tailer has read and claimed of
        it may be running already."""
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
                f"the {self._store}'s store was set back: the scheduler saw it give what it does not know of; it hands "
                "nothing out until that is over"
            )
        if not self._opened and self._session is not None:
            self._session.may_push()

    def _fails(self, why: str) -> None:
        self.failing = why
