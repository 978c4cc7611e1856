"""The state on a Redis server: one store of each kind over its keys, which several nodes may share."""

from __future__ import annotations

import contextlib

from ...foundation.clock import Clock
from ...model.errors import Unavailable
from ...model.reopening import Trouble
from ..checkpoints.redis import RedisCheckpoints
from ..config import StoresConfig
from ..control.redis import RedisControl
from ..dead_letters.redis import RedisDeadLetters
from ..drops.redis import RedisDrops
from ..inventory.redis import RedisInventory
from ..ledger.redis import RedisLedger
from ..ownership.redis import RedisOwnership
from ..redis.script_flags import settles
from ..replays.redis import RedisReplays
from ..results.redis import RedisResults
from ..schedules.redis import RedisSchedules
from ..segments.redis import RedisSegments
from ..trusted_time import HOST, TrustedTime
from ..usage.redis import RedisUsage
from .engines import StateEngine
from .redis_server import RedisStateOptions, StateServer
from .state import StateStores

#: KEYS: a hash of bound logs. ARGV: a log, the text that was seen there, a new text. Answers the text that is there.
_REBIND = settles(
    "local there = redis.call('HGET', KEYS[1], ARGV[1]) or ''"
    " if there == ARGV[2] then redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) return ARGV[3] end return there"
)


class RedisGround:
    """The base of a state in Redis: the server and its connections."""

    def __init__(self, server: StateServer, results: RedisResults) -> None:
        self.server = server
        self._results = results

    async def open(self) -> None:
        with contextlib.suppress(Unavailable):
            await self.server.look()

    async def rebind(self, what: str, seen: str, text: str) -> str:
        return str((await self.server.run(_REBIND, [self.server.key("bound")], what, seen, text)).decode())

    def troubles(self) -> list[Trouble]:
        """Troubles of the server and of its data, for operators."""
        return self.server.troubles()

    def stay_quiet(self, until: float) -> None:
        self.server.quiet_until = max(self.server.quiet_until, until)

    async def sweep(self) -> int:
        self.server.look_now_and_then()
        try:
            return await self._results.sweep()
        except Unavailable:
            return 0  # it is tried again soon, and other calls report the failure

    async def close(self) -> None:
        await self.server.close()


def state_on(
    server: StateServer, config: StoresConfig, clock: Clock, trusted: TrustedTime | None = None
) -> StateStores:
    """The state over a server's keys."""
    results = RedisResults(
        server, clock, retention=config.result_retention, max_bytes=config.result_bytes, trusted=trusted
    )
    return StateStores(
        ground=RedisGround(server, results),
        checkpoints=RedisCheckpoints(server),
        control=RedisControl(server, clock),
        dead_letters=RedisDeadLetters(server, config.max_dead_letters),
        drops=RedisDrops(server),
        inventory=RedisInventory(server),
        ledger=RedisLedger(server),
        ownership=RedisOwnership(server),
        replays=RedisReplays(server),
        results=results,
        schedules=RedisSchedules(server),
        segments=RedisSegments(server),
        usage=RedisUsage(server),
    )


def _build(
    options: RedisStateOptions,
    config: StoresConfig,
    clock: Clock,
    *,
    wait: float,
    fleet: str = "",
    times: dict[str, TrustedTime] | None = None,
) -> StateStores:
    server = StateServer(options, durability=config.durability, wait=wait, fleet=fleet, clock=clock)
    return state_on(server, config, clock, (times or {}).get(HOST))


ENGINE = StateEngine("redis", RedisStateOptions, _build)
