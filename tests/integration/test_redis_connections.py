"""The short way of a command to a real Redis: its answers are those of redis-py, and a connection is nobody's twice."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import exceptions

from tailrace.model.errors import NotConnected
from tailrace.stores.redis import connections
from tailrace.stores.redis.options import RedisOptions
from tailrace.stores.redis.server import RedisServer, Script

WORDS = ("text", "ü", 7, -1, 2.5, b"\x00\xff", b"", memoryview(b"view"), "x" * 100_000, 10**18, 1e22)


@pytest.fixture
async def client(redis_server: str) -> AsyncIterator[Any]:
    """A client whose commands take the short way."""
    async with RedisOptions(url=redis_server).client() as client:
        client.response_callbacks.clear()
        yield client
        await client.connection_pool.disconnect()


@pytest.fixture
def key() -> str:
    return f"short:{uuid.uuid4().hex}"


async def closed_by_the_server(client: Any, *numbers: int) -> None:
    """Ends connections at the server, and waits until this side knows."""
    idle = [*client.connection_pool._idle]
    async with RedisOptions(url=client.url).client() as other:
        for number in numbers:
            await other.execute_command("CLIENT", "KILL", "ID", number)
        await other.connection_pool.disconnect()
    async with asyncio.timeout(10):
        for connection in idle:
            while not await connection._parser.can_read():
                await asyncio.sleep(0)


async def test_a_command_is_packed_as_redis_py_packs_it(client: Any, key: str) -> None:
    # Given words of every kind that a store sends
    command = ("RPUSH", key, *WORDS)
    # When they are sent by the short way
    assert await client.execute_command(*command) == len(WORDS)
    # Then the server has what redis-py would have sent
    connection = await client.connection_pool.get_connection()
    assert b"".join(connection.pack_command(*command)) == connections.pack_command(command)
    await client.connection_pool.release(connection)
    kept = await client.execute_command("LRANGE", key, 0, -1)
    assert kept[:6] == [b"text", "ü".encode(), b"7", b"-1", b"2.5", b"\x00\xff"]
    await client.execute_command("DEL", key)


async def test_what_a_server_refuses_is_redis_pys_error_and_the_connection_goes_on(client: Any, key: str) -> None:
    mine = await client.execute_command("CLIENT", "ID")
    with pytest.raises(exceptions.NoScriptError):
        await client.execute_command("EVALSHA", "0" * 40, 0)
    with pytest.raises(exceptions.ResponseError, match="unknown command"):
        await client.execute_command("NOSUCH")
    assert await client.execute_command("CLIENT", "ID") == mine


async def test_a_connection_that_the_server_closed_is_dialled_again(redis_server: str, client: Any) -> None:
    # Given an idle connection that the server ends
    client.url = redis_server
    mine = await client.execute_command("CLIENT", "ID")
    await closed_by_the_server(client, mine)
    # When the next command comes, then it goes over a new one
    assert await client.execute_command("CLIENT", "ID") != mine


async def test_the_answer_to_who_left_is_told_to_nobody_else(client: Any, key: str) -> None:
    # Given a caller that waits for an answer and leaves
    waits = asyncio.create_task(client.execute_command("BLPOP", key, 30))
    async with asyncio.timeout(10):
        while not client.connection_pool._all or client.connection_pool._idle:
            await asyncio.sleep(0)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    # When its answer would come, and others ask at once
    await client.execute_command("RPUSH", key, "late")
    # Then each hears its own
    echoes = await asyncio.gather(*(client.execute_command("ECHO", f"{number}") for number in range(40)))
    assert echoes == [b"%d" % number for number in range(40)]
    await client.execute_command("DEL", key)


async def test_who_comes_when_all_are_in_use_waits_for_one_and_not_for_ever(redis_server: str) -> None:
    # Given two connections, both in use
    pool = connections.RedisConnections.from_url(redis_server, max_connections=2, timeout=0.05, protocol=2)
    first, second = await pool.get_connection(), await pool.get_connection()
    assert first is not second
    # When nobody gives one back, then the next one is refused
    with pytest.raises(exceptions.ConnectionError, match="No connection available"):
        await pool.get_connection()
    # When one is given back, then it is that one
    await pool.release(second)
    assert await pool.get_connection() is second
    await pool.release(first)
    await pool.release(second)
    await pool.disconnect()


async def test_who_waits_for_a_connection_gets_the_first_that_is_given_back(redis_server: str) -> None:
    pool = connections.RedisConnections.from_url(redis_server, max_connections=1, timeout=30.0, protocol=2)
    only = await pool.get_connection()
    waiting = [asyncio.create_task(pool.get_connection()) for _ in range(3)]
    async with asyncio.timeout(10):
        while not (pool._room._waiters and len(pool._room._waiters) == 3):
            await asyncio.sleep(0)
    # When one of them leaves, and it is given back
    waiting[0].cancel()
    await pool.release(only)
    # Then the others have it, one after the other
    for task in waiting[1:]:
        assert await task is only
        await pool.release(only)
    with contextlib.suppress(asyncio.CancelledError):
        await waiting[0]
    assert not pool._room.locked()
    await pool.disconnect()


async def test_a_server_that_cannot_be_reached_takes_no_connection_away() -> None:
    # Given a server that is not there, and more calls than there are connections
    server = RedisServer(RedisOptions(url="redis://127.0.0.1:1/0"), 0.0)
    for _ in range(40):
        with pytest.raises(NotConnected, match="cannot be reached"):
            await server.run(Script("return 1"), ["key"])
    await server.close()


async def test_pipelines_and_commands_share_the_connections(redis_server: str, key: str) -> None:
    server = RedisServer(RedisOptions(url=redis_server), 0.0)
    answers = await asyncio.gather(
        *(server.calls([("ECHO", "a"), ("ECHO", "b")]) for _ in range(20)),
        *(server.call("ECHO", "c") for _ in range(20)),
    )
    assert answers == [[b"a", b"b"]] * 20 + [b"c"] * 20
    pool = server._client(0).connection_pool
    assert len(pool._all) <= 16 and sorted(map(id, pool._all)) == sorted(map(id, pool._idle))
    await server.close()
    assert not any(connection.is_connected for connection in pool._all)
