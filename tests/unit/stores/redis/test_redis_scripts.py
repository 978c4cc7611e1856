"""The scripts of the log in Redis, run by fakeredis: the positions that they give, their reads, and the rest after a
trim."""

from __future__ import annotations

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from tailrace.model.errors import ConfigError, InvalidPayload, NotConnected
from tailrace.stores.log.log import Bounds, Record
from tailrace.stores.log.redis import RedisLog, RedisLogOptions
from tailrace.stores.redis.options import RedisOptions
from tailrace.stores.redis.server import RedisServer, Script
from tailrace.testing.clock import ManualClock

INFO = b"maxmemory_policy:%s\r\naof_enabled:1\r\n"


class Pretended(FakeAsyncRedis):
    """A client of fakeredis, with the INFO and CONFIG that it does not know."""

    policy = b"noeviction"

    async def execute_command(self, *command, **options):
        if command[0] == "INFO":
            return INFO % self.policy
        if command[0] == "CONFIG":
            return [b"appendfsync", b"always"]
        return await super().execute_command(*command, **options)


class Evicting(Pretended):
    policy = b"volatile-lru"


def log_of(server: FakeServer, kind: type[FakeAsyncRedis] = Pretended, prefix: str = "tailrace") -> RedisLog:
    return RedisLog(
        RedisLogOptions(prefix=prefix), ManualClock(), lambda: (kind(server=server), FakeAsyncRedis(server=server))
    )


@pytest.fixture
async def log():
    log = log_of(FakeServer())
    yield log
    await log.close()


async def payloads(log: RedisLog, position: int, limit: int = 100, max_bytes: int = 1 << 20) -> list[bytes]:
    return (await log.read("s", 0, position, limit, max_bytes)).payloads


async def test_batches_are_named_by_their_positions(log: RedisLog) -> None:
    assert [await log.append("s", 0, [Record(b"x")] * count) for count in (3, 1, 2000)] == [0, 3, 4]
    names = await log._server.call("XRANGE", "tailrace:{log:s/0}:records", "-", "+")
    assert [name for name, _ in names] == [b"0-3", b"3-1", b"4-1024", b"1028-976"]


async def test_a_read_begins_inside_a_batch_and_ends_inside_another(log: RedisLog) -> None:
    for first in range(0, 30, 3):
        await log.append("s", 0, [Record(b"%d" % (first + index)) for index in range(3)])
    assert await payloads(log, 4, 7) == [b"%d" % number for number in range(4, 11)]
    assert await payloads(log, 28) == [b"28", b"29"]
    assert await payloads(log, 30) == []


async def test_a_trim_keeps_the_batch_that_is_not_done_and_hides_what_is(log: RedisLog) -> None:
    for _ in range(4):
        await log.append("s", 0, [Record(b"x" * 5000)] * 3)
    await log.trim("s", 0, 7)
    assert await log.bounds("s") == {0: Bounds(7, 12)}
    assert (await log.read("s", 0, 0, 100, 1 << 20)).positions == [7, 8, 9, 10, 11]
    await log.trim("s", 0, 3)
    assert await log.bounds("s") == {0: Bounds(7, 12)}


async def test_positions_go_on_when_somebody_deletes_the_records(log: RedisLog) -> None:
    await log.append("s", 0, [Record(b"x")] * 5)
    await log._server.call("DEL", "tailrace:{log:s/0}:records")
    assert await log.append("s", 0, [Record(b"y")]) == 5
    assert await payloads(log, 0) == [b"y"]


async def test_two_prefixes_are_two_logs() -> None:
    server = FakeServer()
    one, other = log_of(server), log_of(server, prefix="other")
    await one.append("s", 0, [Record(b"1")])
    await other.append("t", 0, [Record(b"2")])
    assert (await one.streams(), await other.streams()) == (["s"], ["t"])
    await one.close()
    await other.close()


async def test_a_record_that_is_too_large_is_refused_before_anything_is_stored(log: RedisLog) -> None:
    with pytest.raises(InvalidPayload, match="are allowed"):
        await log.append("s", 0, [Record(b"fine"), Record(bytes(13 << 20))])
    assert (await log.bounds("s"))[0] == Bounds(0, 0)


async def test_a_server_that_throws_data_away_is_refused() -> None:
    log = log_of(FakeServer(), Evicting)
    with pytest.raises(ConfigError, match="volatile-lru"):
        await log.open()
    with pytest.raises(ConfigError, match="noeviction"):
        await log.append("s", 0, [Record(b"x")])
    await log.close()


async def test_a_server_that_is_away_is_asked_later() -> None:
    server = FakeServer()
    server.connected = False
    log = log_of(server, FakeAsyncRedis)
    await log.open()
    with pytest.raises(NotConnected, match="cannot be reached"):
        await log.append("s", 0, [Record(b"x")])
    await log.close()


async def test_a_script_that_the_server_does_not_have_is_sent_whole() -> None:
    server = FakeServer()
    fake = FakeAsyncRedis(server=server)
    connection = RedisServer(RedisOptions(), 1.0, lambda: (fake, FakeAsyncRedis(server=server)))
    script = Script("return {KEYS[1], ARGV[1]}")
    for _ in range(2):
        assert await connection.run(script, ["key"], "value") == [b"key", b"value"]
    await connection.call("SCRIPT", "FLUSH")
    assert await connection.run(script, ["key"], "again") == [b"key", b"again"]
    await connection.close()
