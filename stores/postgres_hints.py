"""Nodes tell each other that something may be due, or was changed: LISTEN and NOTIFY, as a hint and nothing more.

Polling finds everything without it. A hint is sent in a transaction of its own, at most every twentieth of a second,
since NOTIFY holds a lock of the whole database when it commits. A pooler in transaction mode loses hints without a
word.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg

from ..sdk.lifecycle import cancel
from ..sdk.model.errors import TailraceError
from .postgres import PostgresOptions

#: Seconds between hints, and until a broken connection is dialled again.
EVERY, AGAIN = 0.05, 5.0

Rows = Callable[[str, Sequence[Any], str], Awaitable[list[tuple[Any, ...]]]]


class Hints:
    """`wake` is called for each hint of another node, and when hints may have been missed. Those who use one schema for
    different things give what theirs are `about`."""

    def __init__(self, options: PostgresOptions, rows: Rows, wake: Callable[[], None], about: str) -> None:
        self._options = options
        self._rows = rows
        self._wake = wake
        self._about = f"{about} "
        self._me = self._about + secrets.token_hex(8)
        self._listener: asyncio.Task[None] | None = None
        self._teller: asyncio.Task[None] | None = None
        self._untold = False
        self.listening = asyncio.Event()

    def open(self) -> None:
        """Listens from now on. Harmless when open."""
        if self._options.notify and self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="postgres-hints")

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
            self._teller = asyncio.create_task(self._tell(), name="postgres-hints-told")

    async def _tell(self) -> None:
        while self._untold:
            self._untold = False
            try:
                await self._rows("SELECT pg_notify(%s, %s)", (self._options.db_schema, self._me), "a hint")
            except TailraceError:
                return  # who does not hear it polls
            await asyncio.sleep(EVERY)

    async def _listen(self) -> None:
        while True:
            try:
                connection = await self._options.connect()
                async with connection:
                    await connection.execute(f'LISTEN "{self._options.db_schema}"'.encode())
                    self.listening.set()
                    self._wake()
                    async for hint in connection.notifies():
                        if hint.payload.startswith(self._about) and hint.payload != self._me:
                            self._wake()
            except (TailraceError, psycopg.Error, OSError):
                self.listening.clear()
            await asyncio.sleep(AGAIN)
