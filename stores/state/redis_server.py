"""The server of a state in Redis: it is checked before its first use, and again after it was away."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Self

from pydantic import model_validator

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.errors import ConfigError, NotConnected, Unavailable
from ...model.reopening import MISSING, Trouble
from ..queue.redis.cluster import cluster_client
from ..redis.fleet import refuse_another_fleet
from ..redis.options import RedisStoreOptions, refuse_on_a_cluster
from ..redis.script_flags import settles
from ..redis.server import RedisServer, Script
from ..redis.trust import LOOK_AGAIN, facts, profile
from .redis_identity import HOME, KEYS, OLDER

#: Seconds that the server holds one wait.
HELD = 5.0
#: Seconds by which a server's uptime may be longer than INFO tells, in whole seconds.
SLACK = 2.0
#: Seconds without an answer after which a restart does not count as a plain one: the server may have been another one
#: meanwhile.
SILENCE = 60.0
#: Seconds for which operators are told that data was found to be older than it was.
TOLD = 86_400.0

_LOOK = settles(HOME + "return {whole(wait), moved, run}")
_LOG = logging.getLogger("tailrace.stores")


class RedisStateOptions(RedisStoreOptions):
    """Options of a state in Redis. `prefix` begins the name of every key: another one is another state.

    cluster   the server is a node of a Redis Cluster, whose other nodes are asked where the state's slot is
    """

    cluster: bool = False

    @model_validator(mode="after")
    def _fits_a_cluster(self) -> Self:
        refuse_on_a_cluster(self, cluster=self.cluster)
        return self


class StateServer:
    """The server of one state. All keys have one hash tag, so that a script may have any of them, on a cluster too.
    `wait` is the lease of a source, seconds; `fleet` is the fleet of this process, empty where it has none.

    profile      the server's promise for an acknowledged write; empty: it is to be checked
    seen         the highest version of ownership that this process saw
    quiet_until  by the monotonic clock; until then no stream is taken
    """

    def __init__(
        self,
        options: RedisStateOptions,
        *,
        durability: Literal["durable", "relaxed"] = "durable",
        wait: float = 36.0,
        fleet: str = "",
        clock: Clock = SYSTEM_CLOCK,
        clients: Callable[[], tuple[Any, Any]] | None = None,
    ) -> None:
        self._prefix = f"{{{options.prefix}}}:state:"
        self._cluster = options.cluster
        if options.cluster:
            clients = clients or (
                lambda: (cluster_client(options, self._prefix), cluster_client(options, self._prefix))
            )
        # On a cluster every script declares one key that is always there and one that never is.
        declared = (f"{self._prefix}home", f"{self._prefix}-") if options.cluster else ()
        self._server = RedisServer(options, HELD, clients, declared, f"{self._prefix}counted")
        self._looking = asyncio.Lock()
        self.name = self._server.name
        self.profile = ""
        self.seen = 0
        self.quiet_until = -math.inf
        self._durability = durability
        self._wait = wait
        self._fleet = fleet
        self._clock = clock
        self._told = ""
        self._run = ""
        self._heard = clock.monotonic()
        self._checked = -math.inf
        self._older = 0.0  # when its data was found to be older than this process knew (wall clock); 0: never

    def key(self, *names: str) -> str:
        """The name of a key. At most the last part may come from outside this code, such as a source's name."""
        return self._prefix + ":".join(names)

    async def home(self) -> tuple[list[str], list[Any]]:
        """The keys and arguments with which scripts over HOME begin."""
        await self._ready()
        return self._home()

    def _home(self) -> tuple[list[str], list[Any]]:
        keys = [self.key(*name.split(":")) for name in KEYS]
        silent = self._clock.monotonic() - self._heard + SLACK
        known = (self._run, round(silent if silent < SILENCE else -1.0, 3))
        return keys, [int(self._durability == "durable"), int(self._wait * 1e6), self.seen, *known]

    async def look(self) -> None:
        """Checks the server's promises and its identity, unless that was done since it was last away. Raises
        ConfigError for a server that may lose what it must not, and Unavailable."""
        if not self.profile:
            async with self._looking:
                if not self.profile:
                    await self._look()

    def look_now_and_then(self) -> None:
        """Has the next call check the server again if the last check was a while ago."""
        if self._clock.monotonic() - self._checked >= LOOK_AGAIN:
            self.profile = ""

    async def _ready(self) -> None:
        """Checks the server as `look` does, while the process runs: one that cannot be trusted raises NotConnected, so
        that callers wait until it can."""
        try:
            await self.look()
        except ConfigError as error:
            raise NotConnected(str(error)) from None

    async def _look(self) -> None:
        info = facts(await self._server.call("INFO", "everything"))
        promised = await profile(self._server, info, self._durability, cluster=self._cluster, about="state")
        await refuse_another_fleet(self._server, self.key("control"), f"the state {self._prefix!r}", self._fleet)
        keys, arguments = self._home()
        wait, moved, run = await self._server.run(_LOOK, keys, *arguments)
        if promised != self._told:
            self._told = promised
            (_LOG.warning if promised.startswith("relaxed") else _LOG.info)("%s: %s", self.name, promised)
        self.note_home(int(wait), moved, run)
        self.profile = promised
        self._checked = self._clock.monotonic()

    def troubles(self) -> list[Trouble]:
        """Troubles of the server and of its data, for operators."""
        found = self._server.troubles("state")
        if self._older and self._clock.wall() - self._older < TOLD:
            what = (
                f"{MISSING}: {self.name} came back with data that is older than what was seen before. Results, "
                "dead letters, schedules and settings of its last moments before that are lost, and items that had "
                "ended run again"
            )
            todo = "look through what operators and schedules did then: tailrace acts, tailrace schedule list"
            found.append(Trouble("state", self._older, what, todo=todo))
        return found

    def note_home(self, wait: int, moved: bytes, run: bytes) -> None:
        """Notes the answer of a script over HOME. `wait` in microseconds."""
        self._run, self._heard = run.decode(), self._clock.monotonic()
        if wait:
            until = self._clock.monotonic() + wait / 1e6
            if not moved and not self.quiet():
                _LOG.warning("%s: no stream is taken for %.0f s, since it was started anew", self.name, wait / 1e6)
            self.quiet_until = max(self.quiet_until, until)
        if moved in OLDER:
            self._older = self._clock.wall()
        if moved:
            _LOG.warning(
                "%s: %s. Items handed out before may still run: no stream is taken for %.0f s (the lease of a source), "
                "and all owners begin anew",
                self.name,
                moved.decode(),
                wait / 1e6,
            )

    def quiet(self) -> float:
        """Seconds for which no stream is taken yet."""
        return max(0.0, self.quiet_until - self._clock.monotonic())

    async def call(self, *command: Any, about: str = "") -> Any:
        """Sends one command. `about` names its purpose in messages."""
        await self._ready()
        return await self._watched(self._server.call(*command, about=about))

    async def wait(self, *command: Any, about: str = "") -> Any:
        """Sends one command that may be held by the server, for at most HELD seconds."""
        await self._ready()
        return await self._watched(self._server.wait(*command, about=about))

    async def run(self, script: Script, keys: Sequence[str], *arguments: Any, about: str = "") -> Any:
        """Runs a script."""
        await self._ready()
        return await self._watched(self._server.run(script, keys, *arguments, about=about))

    async def _watched(self, answer: Awaitable[Any]) -> Any:
        try:
            found = await answer
            self._heard = self._clock.monotonic()
            return found
        except NotConnected:
            self.profile = ""  # it may be another one when it is back
            raise

    async def close(self) -> None:
        """Closes the connections. Harmless when closed; a later call dials anew."""
        self.profile = ""
        await self._server.close()


def unavailable(quiet: float) -> Unavailable:
    """The error for a stream that is not taken yet, with the seconds that are left."""
    return Unavailable(
        f"items handed out before the store moved may still run: no stream is taken for {quiet:.0f} s more"
    )
