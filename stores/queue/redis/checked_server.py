"""The server of a queue on Redis, which is looked at before it is used and again whenever it may be another one than it
was, and the clocks there and here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ....foundation.clock import Clock
from ....model.errors import ConfigError, NotConnected
from ...config import StoresConfig
from ...redis.fleet import refuse_another_fleet
from ...redis.server import RedisServer, Script
from ..server_clock import ServerClock
from .identity import RedisIdentity
from .kinds import RedisKinds
from .options import RedisQueueOptions
from .profile import profile

_LOG = logging.getLogger("tailrace.stores")


class CheckedRedis:
    """A server that is looked at before it is used. `base` begins the name of each key; `time` is µs instead of the
    server's clock, or -1; `fleet` is that of this process, empty where it has none."""

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
        self.home = RedisIdentity(server, base, wait, clock, durable=config.durability == "durable")
        self.kinds = RedisKinds(server, base)
        self.profile = ""  # what the server promises; empty until it was asked
        self.clock, self.server_clock = clock, ServerClock(options.server, wait, clock)
        self.time = time
        self.options = options
        self._durability = config.durability
        self._fleet = fleet
        self._trusted = False  # it was looked at, and was good

    async def ready(self) -> None:
        """Looks at the server where that is due. Raises ConfigError for one that cannot keep a queue; while we run,
        such a one is to be waited for until it can."""
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
        await self.home.look(self.time)
        await self.kinds.relearn()
        self.profile = promised
        (_LOG.info if self._durability == "durable" else _LOG.warning)("%s: %s", self.server.name, promised)

    async def look_again(self) -> None:
        """Looks at the server again, which is another one, or not what it was."""
        self.profile = ""
        await self.ready()

    async def run(self, script: Script, *arguments: Any, about: str) -> Any:
        """A script of the queue; its first argument, the time, is told to all of them."""
        if not self.profile:
            await self.ready()
        try:
            return await self.server.run(script, [self.base], self.time(), *arguments, about=about)
        except NotConnected:
            self.profile = ""  # it may be another one, or another one's, when it is back
            raise

    async def close(self) -> None:
        """Closes the connections. Harmless when closed."""
        self.profile = ""
        await self.server.close()
