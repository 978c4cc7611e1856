"""A master that was demoted keeps its connections open: a client that is refused there dials anew, by the server's
name."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from redis.exceptions import ReadOnlyError

from tailrace.model.errors import NotConnected
from tailrace.stores.redis.connections import Commands, RedisConnections
from tailrace.stores.redis.options import RedisOptions
from tailrace.stores.redis.server import RedisServer
from tailrace.stores.redis.trust import profile


class World:
    """A name that leads to one of two servers; only the `master` takes writes."""

    def __init__(self) -> None:
        self.leads_to = self.master = "a"
        self.made: list[Connection] = []
        self.server = RedisServer(RedisOptions(), 1.0, lambda: (self._client(), self._client()))

    def _client(self) -> Commands:
        pool = RedisConnections(timeout=1.0, max_connections=4, connection_class=cast(Any, self._connection))
        return Commands(connection_pool=pool)

    def _connection(self, **_: Any) -> Connection:
        self.made.append(Connection(self))
        return self.made[-1]


class Connection:
    """A connection that stays with the server to which the name led when it was dialled."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.to = ""
        self.answer = asyncio.Event()
        self.answer.set()

    async def connect(self) -> None:
        self.to = self.to or self._world.leads_to

    async def disconnect(self) -> None:
        self.to = ""

    async def can_read(self) -> bool:
        return False

    async def send_packed_command(self, command: Any, check_health: bool) -> None:
        """Sends nothing: the answer is there."""

    async def read_response(self) -> bytes:
        await asyncio.sleep(0)  # others come meanwhile
        await self.answer.wait()
        if self.to != self._world.master:
            raise ReadOnlyError("You can't write against a read only replica.")
        return self.to.encode()


async def test_who_is_refused_by_a_demoted_master_comes_to_the_new_one() -> None:
    # Given a server in use, by several calls at once
    world = World()
    assert await asyncio.gather(*(world.server.call("SET") for _ in range(3))) == [b"a"] * 3
    # When another one is the master, to which the name leads, and no connection is closed
    world.leads_to = world.master = "b"
    with pytest.raises(NotConnected, match="is a replica, which takes no writes"):
        await world.server.call("SET")
    # Then the next calls go there, all of them
    assert await asyncio.gather(*(world.server.call("SET") for _ in range(4))) == [b"b"] * 4


async def test_a_connection_that_was_in_use_dials_anew_once_it_is_free() -> None:
    world = World()
    await asyncio.gather(*(world.server.call("SET") for _ in range(2)))
    # Given a call that waits for its answer while another one is refused
    slow = world.made[-1]
    slow.answer.clear()
    waiting = asyncio.create_task(world.server.call("SET"))
    await asyncio.sleep(0)
    world.leads_to = world.master = "b"
    with pytest.raises(NotConnected):
        await world.server.call("SET")
    # When it is answered
    slow.answer.set()
    with pytest.raises(NotConnected):
        await waiting
    # Then nobody has a connection to the former master any more
    assert await asyncio.gather(*(world.server.call("SET") for _ in range(4))) == [b"b"] * 4


async def test_a_look_that_finds_a_replica_dials_anew_too() -> None:
    world = World()
    await world.server.call("GET")
    world.leads_to = world.master = "b"
    with pytest.raises(NotConnected, match="is a replica"):
        await profile(world.server, {"role": "slave"}, "durable", cluster=False, about="queue")
    assert await world.server.call("SET") == b"b"
