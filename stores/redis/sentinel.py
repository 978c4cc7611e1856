"""Connections to the master that Redis Sentinels name: it is asked for at each dial, and looked for all the time,
so that a switch closes the connections to the former one.

A former master goes on taking writes until a Sentinel tells it, 11 s after a switch that was asked for; the new one
will never have them. All Sentinels are asked at once, and the answer with the highest epoch counts: a Sentinel that was
cut off, or has not heard of a switch yet, names the former master, and one that hangs holds nobody up for longer than
PATIENCE.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelManagedConnection, SentinelManagedSSLConnection
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError

from ...foundation.lifecycle import cancel
from .connections import RedisConnections

#: Seconds that each Sentinel gets to answer.
PATIENCE = 1.0
#: Seconds between two looks for another master.
LOOK_EVERY = 0.5

_LOG = logging.getLogger("tailrace.stores")


class SentinelAddress(NamedTuple):
    """Sentinels by host and port, the name of the master that they watch, and its database."""

    sentinels: tuple[tuple[str, int], ...]
    master: str
    database: int = 0

    @property
    def text(self) -> str:
        """The address as messages name it."""
        return f"{self.master!r} by Sentinel at {','.join(f'{host}:{port}' for host, port in self.sentinels)}"


class SentinelConnections(RedisConnections):
    """A pool of connections to the master. `given`: arguments of each connection; `asking`: those of connections to
    Sentinels."""

    is_master = True
    check_connection = False

    def __init__(
        self, address: SentinelAddress, *, timeout: float, tls: bool, asking: Mapping[str, Any], **given: Any
    ) -> None:
        kind = SentinelManagedSSLConnection if tls else SentinelManagedConnection
        super().__init__(timeout=timeout, connection_class=kind, db=address.database, **given)
        self.connection_kwargs["connection_pool"] = weakref.proxy(self)
        self._address = address
        self._asking = {**asking, "ssl": tls, "protocol": 2, "socket_timeout": PATIENCE}
        self._asking |= {"socket_connect_timeout": PATIENCE, "retry": Retry(NoBackoff(), 0)}
        self._sentinels: Any = None  # redis-py's Sentinel while it is asked
        self._master: tuple[str, int] | None = None
        self._watch: asyncio.Task[None] | None = None

    async def get_master_address(self) -> tuple[str, int]:
        """The master's address now. Raises redis-py's ConnectionError where no Sentinel names one."""
        await self._look()
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look_on(), name="redis-sentinels")
        assert self._master is not None, "a look finds a master or raises"
        return self._master

    async def _look(self) -> None:
        """Asks all Sentinels. Where the master is another one than before, closes the connections to the former one,
        those in use too: nothing that it answers now is worth anything."""
        if self._sentinels is None:
            made: Any = Sentinel
            self._sentinels = made(self._address.sentinels, sentinel_kwargs=self._asking)
        told = await asyncio.gather(*map(self._told, self._sentinels.sentinels))
        found = [each for each in told if not isinstance(each, str)]
        if not found:
            raise NoConnection(f"no Sentinel names the master {self._address.master!r}: {'; '.join(map(str, told))}")
        _, master = max(found)
        former, self._master = self._master, master
        if former is not None and former != master:
            _LOG.warning("%s: the master is %s:%d now, and was %s:%d", self._address.text, *master, *former)
            await asyncio.gather(*(each.disconnect() for each in [*self._all]), return_exceptions=True)

    async def _told(self, sentinel: Any) -> tuple[int, tuple[str, int]] | str:
        """The epoch and the address of the master that a Sentinel names, or why it names none."""
        where, name = sentinel.connection_pool.connection_kwargs, self._address.master
        try:
            async with asyncio.timeout(PATIENCE):
                host, port = await sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
                state = await sentinel.execute_command("SENTINEL", "MASTER", name)
            epoch = dict(zip(state[::2], state[1::2], strict=True))[b"config-epoch"]
            return int(epoch), (host.decode(), int(port))
        except (RedisError, OSError, TimeoutError, TypeError) as error:  # TypeError: nothing under this name
            return f"{where['host']}:{where['port']}: {str(error) or 'it does not answer'}"

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            with contextlib.suppress(RedisError, OSError):  # a call that dials hears of it
                await self._look()

    async def disconnect(self, inuse_connections: bool = True) -> None:
        """Closes the connections, and ends the looks for another master until one dials again."""
        watch, self._watch = self._watch, None
        if watch is not None:
            await cancel(watch)
        sentinels, self._sentinels = self._sentinels, None
        if sentinels is not None:
            await sentinels.aclose()
        await super().disconnect(inuse_connections)


def sentinel_address(netloc: str, path: str) -> SentinelAddress:
    """Reads `HOST:PORT,HOST:PORT` (ports: 26379 by default) and `/MASTER/DATABASE`. Raises ValueError for another
    form."""
    hosts = []
    for each in netloc.rpartition("@")[2].split(","):
        host, colon, port = each.rpartition(":") if not each.endswith("]") else (each, "", "")
        hosts.append((host.strip("[]"), int(port)) if colon else (each.strip("[]"), 26379))
    master, _, database = path.strip("/").partition("/")
    if not master or not all(host and 0 < port < 65536 for host, port in hosts):
        raise ValueError("expected redis+sentinel://HOST:26379,HOST:26379/MASTER")
    return SentinelAddress(tuple(hosts), master, int(database or 0))
