"""The server of a queue on Redis: it is checked before it is used, and again whenever it may have changed, together
with both clocks."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from ....foundation.clock import Clock
from ....model.errors import ConfigError, NotConnected
from ...config import StoresConfig
from ...redis.fleet import refuse_another_fleet
from ...redis.server import RedisServer, Script
from ...redis.trust import LOOK_AGAIN
from ..server_clock import ServerClock
from .identity import RedisIdentity
from .kinds import RedisKinds
from .options import RedisQueueOptions
from .profile import profile

_LOG = logging.getLogger("tailrace.stores")


class CheckedRedis:
    """A server that is checked before it is used. `base` is the beginning of each key. `time` returns µs to use instead
    of the server's clock, or -1. `fleet`: the fleet of this process; empty: none."""

    def __init__(
        self,
        server: RedisServer,
        base: str,
        options: RedisQueueOptions,
        config: StoresConfig,
        wait: float,
        clock: Clock,
        time: Callable[[], int],
        fleet: str = "",
    ) -> None:
        self.server = server
        self.base = base
        durable = config.durability == "durable"
        self.home = RedisIdentity(server, base, wait, clock, durable=durable, cluster=options.cluster)
        self.kinds = RedisKinds(server, base)
        self.profile = ""  # the server's promises, as text; empty until they were read
        self.clock, self.server_clock = clock, ServerClock(options.server, wait, clock)
        self.time = time
        self.options = options
        self._durability = config.durability
        self._fleet = fleet
        self._trusted = False  # it passed a check in this process
        self._checked = -math.inf  # when it last did (monotonic)

    async def ready(self) -> None:
        """Checks the server if that is due. Raises ConfigError for a server that cannot hold a queue. If it could once,
        in this process, raises NotConnected instead, so that callers wait until it can again."""
        if self.profile:
            return
        try:
            promised = await profile(self.server, self.base, durability=self._durability, cluster=self.options.cluster)
            await refuse_another_fleet(
                self.server, f"{self.base}meta", f"the queue {self.options.prefix!r}", self._fleet
            )
        except ConfigError as error:
            if self._trusted:
                raise NotConnected(str(error)) from None
            raise
        self._trusted = True
        self._checked = self.clock.monotonic()
        await self.home.look(self.time)
        await self.kinds.relearn()
        self.profile = promised
        (_LOG.info if self._durability == "durable" else _LOG.warning)("%s: %s", self.server.name, promised)

    async def look_now_and_then(self) -> None:
        """Checks the server again if the last check was a while ago."""
        if self.clock.monotonic() - self._checked >= LOOK_AGAIN:
            await self.look_again()

    async def look_again(self) -> None:
        """Checks the server again: it is another one, or has changed."""
        self.profile = ""
        await self.ready()

    async def run(self, script: Script, *arguments: Any, about: str) -> Any:
        """Runs a script of the queue. The first argument of every script is the time."""
        if not self.profile:
            await self.ready()
        try:
            return await self.server.run(script, [self.base], self.time(), *arguments, about=about)
        except NotConnected:
            self.profile = ""  # another server, or another fleet's, may answer next
            raise

    async def close(self) -> None:
        """Closes the connections. Harmless when closed."""
        self.profile = ""
        await self.server.close()
