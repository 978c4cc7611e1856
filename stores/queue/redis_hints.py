"""Nodes tell each other that something may be due: PUBLISH, as a hint and nothing more.

Polling finds everything without it. A hint is sent at most every twentieth of a second.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from redis import exceptions as errors

from ...sdk.lifecycle import cancel
from ...sdk.model.errors import TailraceError
from ..redis import RedisServer

#: Seconds between hints, and until a broken connection is dialled again.
EVERY, AGAIN = 0.05, 5.0
#: Seconds of one wait for a hint.
LISTEN = 60.0


class Hints:
    """`wake` is called for each hint of another node, and when hints may have been missed. `listener` makes a client
    of which one connection will listen; None: nothing is told and nothing heard."""

    def __init__(
        self, server: RedisServer, channel: str, listener: Callable[[], Any] | None, wake: Callable[[], None]
    ) -> None:
        self._server = server
        self._channel = channel
        self._make = listener
        self._wake = wake
        self._me = secrets.token_hex(8)
        self._listener: asyncio.Task[None] | None = None
        self._teller: asyncio.Task[None] | None = None
        self._untold = False
        self.listening = asyncio.Event()

    def open(self) -> None:
        """Listens from now on. Harmless when open."""
        if self._make is not None and self._listener is None:
            self._listener = asyncio.create_task(self._listen(self._make), name="redis-hints")

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
            self._teller = asyncio.create_task(self._tell(), name="redis-hints-told")

    async def _tell(self) -> None:
        while self._untold:
            self._untold = False
            try:
                await self._server.call("PUBLISH", self._channel, self._me, about="a hint")
            except TailraceError:
                return  # who does not hear it polls
            await asyncio.sleep(EVERY)

    async def _listen(self, make: Callable[[], Any]) -> None:
        while True:
            client = make()
            try:
                async with client.pubsub() as heard:
                    await heard.subscribe(self._channel)
                    self._wake()
                    while True:
                        message = await heard.get_message(timeout=LISTEN)
                        if message is None:
                            continue
                        if message["type"] == "subscribe":
                            self.listening.set()
                        elif message["data"] != self._me.encode():
                            self._wake()
            except (errors.RedisError, OSError):
                self.listening.clear()
            finally:
                await client.aclose()
                await client.connection_pool.disconnect()
            await asyncio.sleep(AGAIN)
