"""A log in Redis Streams: each entry is a batch of records, as in the embedded log (the keys: `redis_scripts.py`).

Several processes may use one log. Its promises are those of the server: `appendfsync always` keeps every acknowledged
record, `everysec` may lose the last second, no append-only file may lose all. The log message at the start names the
server's setting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.errors import ConfigError, InvalidRequest, NotConnected
from ...model.reopening import Trouble
from ..redis.fleet import refuse_another_fleet
from ..redis.options import RedisStoreOptions
from ..redis.server import RedisServer
from ..redis.trust import facts as facts_of
from ..redis.trust import refuse_sentinel, refuse_unwritten
from .batch import Batch, decode, rows, take
from .engines import LogEngine
from .log import Bounds, Record, Records
from .redis_scripts import APPEND, CREATE, LIFE, READ, TRIM

#: Most partitions of a stream.
MAX_PARTITIONS = 1024
#: Seconds that the server holds one wait: the time until a new partition far beyond the last, or a dead connection, is
#: noticed.
HELD = 5.0
#: Entries that one step of a trim looks at: a bound on the time that it holds the server.
SWEEP = 10_000

_LOG = logging.getLogger("tailrace.log.redis")


class RedisLogOptions(RedisStoreOptions):
    """Options of a log in Redis. `prefix` begins the name of every key: another one is another log."""


class RedisLog:
    """A Log. `open` checks the server and `close` closes the connections; before `open` it may be used all the same.

    profile  the server's promise for an acknowledged write; empty until the server was asked
    fleet    the fleet of this process, empty where it has none: a log of another one is refused
    """

    batches = True

    def __init__(
        self,
        options: RedisLogOptions,
        clock: Clock = SYSTEM_CLOCK,
        clients: Callable[[], tuple[Any, Any]] | None = None,
        *,
        fleet: str = "",
    ) -> None:
        self.profile = ""
        self._prefix = options.prefix
        self._fleet = fleet
        self._server = RedisServer(options, HELD, clients, (), f"{options.prefix}:{{log}}:counted")
        self._clock = clock
        self._catalogue = f"{options.prefix}:{{log}}"
        self._known: dict[str, int] = {}  # partitions that a stream has at least

    async def open(self) -> None:
        """Asks the server for its promises. Raises ConfigError for a server that evicts data when it is full; one that
        cannot be reached now is asked at its first use."""
        with contextlib.suppress(NotConnected):
            await self._ready()

    async def close(self) -> None:
        """Closes the connections. Harmless when closed."""
        self.profile = ""
        await self._server.close()

    def troubles(self) -> list[Trouble]:
        """Troubles of the server, for operators."""
        return self._server.troubles("delay log")

    async def _ready(self) -> None:
        if self.profile:
            return
        facts = facts_of(await self._server.call("INFO", "everything"))
        refuse_sentinel(self._server.name, facts)
        policy = facts.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise ConfigError(
                f"{self._server.name} evicts data when it is full (maxmemory-policy {policy}), and a log must lose "
                "nothing: run CONFIG SET maxmemory-policy noeviction, or give another server"
            )
        meta = f"{self._catalogue}:meta"
        await refuse_another_fleet(self._server, meta, f"the log {self._prefix!r}", self._fleet)
        fsync = ""
        if facts.get("aof_enabled") == "1":
            with self._server.judged(facts.get("run_id", "")):
                refuse_unwritten(self._server.name, facts, self._server.trusted_run)
            try:
                fsync = (await self._server.call("CONFIG", "GET", "appendfsync"))[1].decode()
            except NotConnected:
                fsync = "unknown"  # not every user may ask
        self.profile = _PROFILES.get(fsync, f"appendfsync {fsync}: ask the operator of the server")
        (_LOG.info if fsync == "always" else _LOG.warning)("%s: %s", self._server.name, self.profile)

    def _keys(self, stream: str, partition: int) -> tuple[str, str]:
        place = f"{self._prefix}:{{log:{stream}/{partition}}}"
        return f"{place}:records", f"{place}:bounds"

    async def create(self, stream: str, partitions: int) -> None:
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise InvalidRequest(f"stream {stream!r}: {partitions} partitions; expected 1 to {MAX_PARTITIONS}")
        await self._ready()
        await self._server.run(CREATE, [self._catalogue], stream, partitions)
        self._known[stream] = max(partitions, self._known.get(stream, 0))

    async def append(self, stream: str, partition: int, records: Sequence[Record]) -> int:
        if partition < 0 or partition >= self._known.get(stream, 0):
            await self.create(stream, partition + 1)
        keys = self._keys(stream, partition)
        if not records:
            return int(await self._server.call("HGET", keys[1], "end") or 0)
        batches = [part for row in rows(stream, records) for part in (row.records, row.blob)]
        return int(await self._server.run(APPEND, keys, repr(self._clock.wall()), *batches, about=f"stream {stream!r}"))

    async def read(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records:
        found = Records([], [], [], [], [])
        if limit < 1:
            return found
        await self._ready()
        start, *answer = await self._server.run(READ, self._keys(stream, partition), position, limit, max_bytes)
        position = max(position, start)
        size = 0
        for first, time, columns in zip(answer[::3], answer[1::3], answer[2::3], strict=True):
            batch = Batch(int(first), float(time), decode(columns))
            count, taken = take(found, batch, position, limit - len(found.positions), max_bytes - size)
            if not count:
                break
            position, size = found.positions[-1] + 1, size + taken
        found.now = self._clock.wall()
        return found

    async def bounds(self, stream: str) -> dict[int, Bounds]:
        await self._ready()
        partitions = int(await self._server.call("HGET", self._catalogue, stream) or 0)
        keys = [self._keys(stream, partition)[1] for partition in range(partitions)]
        answers = await self._server.calls([("HMGET", key, "start", "end") for key in keys])
        return {number: Bounds(int(start or 0), int(end or 0)) for number, (start, end) in enumerate(answers)}

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while True:
            bounds = await self.bounds(stream)
            if any(each.end > ends.get(number, 0) for number, each in bounds.items()):
                return
            left = min(HELD, until - loop.time())
            if left <= 0:
                return
            # One partition more than there are: its first record ends the wait too.
            numbers = range(max(1, len(bounds)) + 1)
            keys = [self._keys(stream, number)[0] for number in numbers]
            after = [f"{bounds[number].end if number in bounds else 0}-0" for number in numbers]
            held = max(1, int(left * 1000))
            await self._server.wait("XREAD", "COUNT", 1, "BLOCK", held, "STREAMS", *keys, *after)

    async def trim(self, stream: str, partition: int, before: int) -> None:
        if before <= 0:
            return
        await self._ready()
        keys = self._keys(stream, partition)
        while await self._server.run(TRIM, keys, before, SWEEP) >= SWEEP // 2:
            pass

    async def streams(self) -> list[str]:
        await self._ready()
        return sorted(name.decode() for name in await self._server.call("HKEYS", self._catalogue))

    async def life(self, stream: str) -> str:
        await self._ready()
        found: bytes = await self._server.run(LIFE, [self._keys(stream, 0)[1]], secrets.token_hex(8))
        return found.decode()


_PROFILES = {
    "always": "durable (appendfsync always): every acknowledged write is on its disk",
    "everysec": "appendfsync everysec: a power cut or a crash of the server may lose the last second",
    "no": "appendfsync no: a power cut may lose all that the operating system had not written yet",
    "": "no append-only file: a restart of the server may lose everything since its last snapshot",
}


ENGINE = LogEngine("redis", RedisLogOptions, RedisLog)
