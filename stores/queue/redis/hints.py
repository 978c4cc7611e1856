"""Hints between nodes over Redis: PUBLISH and SUBSCRIBE."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from redis import exceptions as errors

from ...hints import Hints
from ...redis.server import RedisServer

#: Longest wait for one hint, seconds.
LISTEN = 60.0


class RedisHints(Hints):
    """Hints over one channel. `listener` makes a client, one connection of which will listen; None: no hint is sent or
    heard."""

    def __init__(
        self, server: RedisServer, channel: str, listener: Callable[[], Any] | None, wake: Callable[[], None]
    ) -> None:
        super().__init__("redis", wake, errors.RedisError, RuntimeError, on=listener is not None)
        self._server = server
        self._channel = channel
        self._make = listener
        self._me = secrets.token_hex(8)

    async def _send(self) -> None:
        await self._server.call("PUBLISH", self._channel, self._me, about="a hint")

    async def _hear(self) -> None:
        assert self._make is not None, "nobody listens without a client"
        client = self._make()
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
        finally:
            await client.aclose()
            await client.connection_pool.disconnect()
