"""Connections to a Redis server. A command goes on an idle connection, packed by hiredis, and its answer is returned as
it comes.

redis-py's own client spends most of the processor time of a lone command on work that is not needed here: each argument
is encoded in Python, the pool has three locks, observers and retries are notified. Its connections do all the hard work
(dialling, TLS, passwords, reading), so they are used as they are.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hiredis import pack_command
from redis.asyncio import Redis
from redis.asyncio.connection import ConnectionPool
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import ResponseError


class RedisConnections(ConnectionPool):
    """A pool of at most `max_connections` connections. A call that comes when all are in use waits `timeout` seconds at
    most; with 0 it is refused. Raises redis-py's ConnectionError.

    Invariant: a connection is idle or with a call; one that failed is idle and not connected, and dials again. A
    connection in `_former` is with a call, and is to dial again.
    """

    def __init__(self, *, timeout: float, **given: Any) -> None:
        super().__init__(**given)
        self._timeout = timeout
        self._room = asyncio.Semaphore(self.max_connections)
        self._idle: list[Any] = []
        self._all: list[Any] = []
        self._former: set[Any] = set()

    async def get_connection(self, command_name: Any = None, *keys: Any, **options: Any) -> Any:
        """A connection that is connected, and has no answer to be read."""
        room = self._room
        if not room.locked():
            await room.acquire()
        else:
            try:
                async with asyncio.timeout(self._timeout):
                    await room.acquire()
            except TimeoutError:
                raise NoConnection("No connection available.") from None
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = self.connection_class(**self.connection_kwargs)
            self._all.append(connection)
        try:
            await self.ensure_connection(connection)
        except BaseException:
            self._give(connection)
            raise
        return connection

    async def release(self, connection: Any) -> None:
        """Takes back a connection that is idle again."""
        try:
            if connection in self._former:
                self._former.discard(connection)
                await connection.disconnect()
        finally:
            self._give(connection)

    async def dial_anew(self) -> None:
        """Has the next calls dial, which looks up the server's name: idle connections are closed now, those in use when
        they are free."""
        idle, self._idle = self._idle, []
        let_go = set(idle)
        self._all = [each for each in self._all if each not in let_go]
        self._former.update(self._all)
        await asyncio.gather(*(connection.disconnect() for connection in idle), return_exceptions=True)

    def _give(self, connection: Any) -> None:
        self._idle.append(connection)
        self._room.release()

    async def disconnect(self, inuse_connections: bool = True) -> None:
        """Closes the idle connections, and those in use; each dials again when it is used again."""
        connections = self._all if inuse_connections else self._idle
        await asyncio.gather(*(connection.disconnect() for connection in connections))


class Commands(Redis):
    """A Redis client. Once its `response_callbacks` are cleared, a command takes the short way, and its answer is
    returned as the server sent it. Raises redis-py's errors; nothing is tried again."""

    async def execute_command(self, *command: Any, **options: Any) -> Any:
        """Sends one command, whose first argument is a single word."""
        if self.response_callbacks or options:
            return await super().execute_command(*command, **options)  # type: ignore[no-untyped-call]
        pool: Any = self.connection_pool
        connection = await pool.get_connection()
        try:
            await connection.send_packed_command(pack_command(command), check_health=False)
            return await connection.read_response()
        finally:
            await pool.release(connection)

    async def replicated(self, replicas: int, milliseconds: int, *command: Any) -> Any:
        """Sends one command, and waits on its connection until so many replicas have what it wrote, and all that was
        written before. Raises ResponseError (NOREPLICAS) where they have not within the time."""
        pool: Any = self.connection_pool
        connection = await pool.get_connection()
        try:
            wait: tuple[Any, ...] = ("WAIT", replicas, milliseconds)
            both = pack_command(command) + pack_command(wait)
            await connection.send_packed_command(both, check_health=False)
            refusal: ResponseError | None = None
            answer: Any = None
            try:
                answer = await connection.read_response()
            except ResponseError as error:
                refusal = error
            have = await connection.read_response()
        finally:
            await pool.release(connection)
        if refusal is not None:
            raise refusal
        if have < replicas:
            raise ResponseError(f"NOREPLICAS {have} of {replicas} replicas have it")
        return answer
