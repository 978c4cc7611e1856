"""The log in Redis obeys the laws of logs on a real server, and keeps all acknowledged records when the server is
killed."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tailrace.stores.log.log import Log, Record
from tailrace.stores.log.redis import RedisLog, RedisLogOptions
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.log import LogLaws


class RedisBench:
    """A log of its own on a server that others use too; its keys go with it."""

    def __init__(self, url: str) -> None:
        self.clock = ManualClock()
        self._options = RedisLogOptions(url=url, prefix=f"t-{uuid.uuid4()}")
        self.engine = RedisLog(self._options, self.clock)

    async def __aenter__(self):
        await self.engine.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.close()
        async with self._options.client() as client:
            keys = [key async for key in client.scan_iter(f"{self._options.prefix}:*")]
            if keys:
                await client.delete(*keys)
            await client.connection_pool.disconnect()

    async def reopen(self) -> None:
        await self.engine.close()
        self.engine = RedisLog(self._options, self.clock)
        await self.engine.open()


class TestRedisLog(LogLaws):
    @pytest.fixture(autouse=True)
    def server(self, redis_server: str) -> None:
        self.url = redis_server

    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Log]]:
        return RedisBench(self.url)


async def test_what_was_acknowledged_is_there_after_the_server_was_killed(own_redis) -> None:
    # Given a durable server and three writers, each of which notes what was acknowledged
    server = own_redis()
    log = RedisLog(RedisLogOptions(url=server.address))
    await log.open()
    assert log.profile.startswith("durable")
    said: list[tuple[int, int, int]] = []
    enough = asyncio.Event()

    async def append(partition: int) -> None:
        number = 0
        while True:
            first = await log.append("s", partition, [Record(b"%d" % number)] * 2)
            said.append((partition, first, number))
            number += 1
            if len(said) > 300:
                enough.set()

    writers = [asyncio.create_task(append(partition)) for partition in range(3)]
    await asyncio.wait_for(enough.wait(), 60)
    # When it is killed while they write, and started again with its data
    server.program.kill()
    failures = await asyncio.gather(*writers, return_exceptions=True)
    assert {type(each).__name__ for each in failures} == {"NotConnected"}
    server.program.start()
    # Then everything acknowledged is where it was said to be, positions are dense, and the log goes on
    for partition, bounds in (await log.bounds("s")).items():
        found = await log.read("s", partition, 0, 1 << 20, 1 << 30)
        assert found.positions == list(range(bounds.end))
        for _, first, number in (each for each in said if each[0] == partition):
            assert found.payloads[first : first + 2] == [b"%d" % number] * 2
        assert await log.append("s", partition, [Record(b"next")]) == bounds.end
    await log.close()
