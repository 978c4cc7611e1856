"""Redis Streams on real servers: the words and the end of each trouble, and entries that retention takes."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.errors import InvalidRequest, NotConnected, PositionsGone, StoreFull
from tailrace.stores.log.log import Record
from tailrace.stores.log.redis import RedisLog, RedisLogOptions
from tailrace.tailers.sources.redis_entries import RedisStreamOptions
from tailrace.tailers.sources.redis_stream import RedisStreamSource


@pytest.fixture
async def checkpoints(tmp_path: Path):
    async with EmbeddedStores(tmp_path / "data") as stores:
        yield stores.checkpoints


def source_of(url: str, checkpoints, *streams: str, **options) -> RedisStreamSource:
    return RedisStreamSource(
        RedisStreamOptions(url=url, streams=streams, payload={"field": "n"}, **options), checkpoints, "t"
    )


async def refusal(source: RedisStreamSource) -> str:
    """Opens and reads a source that is refused, and returns the words of the error."""
    with pytest.raises(NotConnected) as told:
        await source.open({})
        await source.read(10, 1 << 20, 0.1)
    await source.close()
    return str(told.value)


async def numbers(source: RedisStreamSource, count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            for batch in await source.read(100, 1 << 20, 1.0):
                assert not batch.lost, batch.lost
                found += [int(payload) for payload in batch.payloads]
    return found


# States.


async def test_a_server_that_dies_and_comes_back_is_read_on(own_redis, checkpoints) -> None:
    server = own_redis()
    with redis.Redis(port=server.port) as client:
        for number in range(10):
            client.xadd("s", {"n": number})
    source = source_of(server.address, checkpoints, "s", timeout=1.0)
    await source.open({})
    assert await numbers(source, 10) == list(range(10))
    position = (await source.ends())["s"]
    pending = asyncio.create_task(source.read(10, 1 << 20, 30.0))
    await asyncio.sleep(0.1)
    server.program.kill()
    with pytest.raises(NotConnected, match="cannot be reached"):
        await pending
    await source.close()
    with pytest.raises(NotConnected, match="cannot be reached"):
        await source.open({"s": position})
    server.program.start()
    with redis.Redis(port=server.port) as client:
        client.xadd("s", {"n": 10})
    await source.open({"s": position})
    assert await numbers(source, 1) == [10]
    await source.close()


async def test_a_server_that_answers_no_more_is_left_in_time(own_redis, checkpoints) -> None:
    server = own_redis()
    source = source_of(server.address, checkpoints, "s", timeout=0.3, connect_timeout=0.3)
    await source.open({})
    server.program.freeze()
    try:
        with pytest.raises(NotConnected, match="does not answer"):
            await source.ends()
    finally:
        server.program.thaw()
    assert await source.ends() == {"s": 0}
    await source.close()


async def test_a_wrong_password_says_so_and_shows_none(own_redis, checkpoints) -> None:
    server = own_redis("--requirepass", "right")
    for url in (server.address, server.address.replace("//", "//:hunter2@")):
        told = await refusal(source_of(url, checkpoints, "s"))
        assert "refuses the user or the password" in told and "hunter2" not in told
    source = source_of(server.address, checkpoints, "s", password="right")
    await source.open({})
    await source.close()


async def test_a_user_who_may_not_is_told_what_to_allow(own_redis, checkpoints) -> None:
    server = own_redis()
    with redis.Redis(port=server.port) as client:
        client.execute_command("ACL", "SETUSER", "reader", "on", ">pw", "~orders", "+xinfo", "+xread")
        client.xadd("orders", {"n": 1})
    reader = {"username": "reader", "password": "pw"}
    assert "ACL SETUSER" in await refusal(source_of(server.address, checkpoints, "orders", **reader))
    assert "ACL SETUSER" in await refusal(source_of(server.address, checkpoints, "other", **reader))
    with redis.Redis(port=server.port) as client:
        client.execute_command("ACL", "SETUSER", "reader", "+xrange")
    source = source_of(server.address, checkpoints, "orders", **reader)
    await source.open({})
    assert await numbers(source, 1) == [1], "XINFO, XRANGE and XREAD are all that it needs"
    await source.close()


async def test_another_kind_of_key_is_named(own_redis, checkpoints) -> None:
    server = own_redis()
    with redis.Redis(port=server.port) as client:
        client.hset("users", "a", "b")
    assert "stream 'users'" in (told := await refusal(source_of(server.address, checkpoints, "users")))
    assert "give the key of a stream" in told


async def test_a_node_of_a_cluster_is_not_taken_for_a_server(own_redis, checkpoints) -> None:
    server = own_redis("--cluster-enabled", "yes")
    assert "Redis Cluster" in await refusal(source_of(server.address, checkpoints, "s"))


async def test_a_full_server_refuses_writes_and_is_still_read(own_redis, checkpoints) -> None:
    server = own_redis()
    log = RedisLog(RedisLogOptions(url=server.address))
    await log.append("s", 0, [Record(b"kept")])
    with redis.Redis(port=server.port) as client:
        client.xadd("orders", {"n": 1})
        client.config_set("maxmemory", "1mb")
    with pytest.raises(StoreFull, match="maxmemory"):
        await log.append("s", 0, [Record(bytes(100_000))] * 10)
    assert (await log.read("s", 0, 0, 10, 1 << 20)).payloads == [b"kept"]
    source = source_of(server.address, checkpoints, "orders")
    await source.open({})
    assert await numbers(source, 1) == [1]
    with redis.Redis(port=server.port) as client:
        client.config_set("maxmemory", "0")
    assert await log.append("s", 0, [Record(b"again")]) == 1, "what was refused left nothing"
    await source.close()
    await log.close()


async def test_an_id_that_is_no_position_stops_the_source_by_name(redis_server, checkpoints) -> None:
    with fresh(redis_server) as (client, key):
        client.xadd(key, {"n": 1}, id=f"5-{1 << 20}")
        source = source_of(redis_server, checkpoints, key)
        with pytest.raises(InvalidRequest, match=r"5-1048576.*does not fit"):
            await source.open({})
            await source.read(10, 1 << 20, 1.0)
        await source.close()


# Retention.


@contextlib.contextmanager
def fresh(url: str):
    """A client and a key that is nobody else's."""
    key = f"t:{uuid.uuid4()}"
    with redis.Redis.from_url(url) as client:
        yield client, key
        client.delete(key)


@contextlib.asynccontextmanager
async def opened(url: str, checkpoints, key: str, position: int) -> AsyncIterator[RedisStreamSource]:
    source = source_of(url, checkpoints, key)
    await source.open({key: position} if position else {})
    yield source
    await source.close()


async def test_what_retention_takes_while_reading_is_counted(redis_server, checkpoints) -> None:
    with fresh(redis_server) as (client, key):
        ids = [client.xadd(key, {"n": number}) for number in range(20)]
        async with opened(redis_server, checkpoints, key, 0) as source:
            await source.read(5, 1 << 20, 1.0)
            client.xtrim(key, minid=ids[12], approximate=False)
            (batch,) = await source.read(3, 1 << 20, 1.0)
            assert batch.lost_items == 7 and len(batch.lost) == 1
            assert batch.lost[0][1] + 1 == batch.positions[0]
            assert batch.payloads == [b"12", b"13", b"14"]
            assert await source.behind({key: batch.positions[-1] + 1}) == 5


async def test_a_stream_that_keeps_only_its_newest_entry_loses_nothing_to_who_keeps_up(
    redis_server, checkpoints
) -> None:
    with fresh(redis_server) as (client, key):
        async with opened(redis_server, checkpoints, key, 0) as source:
            for number in range(20):
                client.xadd(key, {"n": number}, maxlen=1, approximate=False)
                assert await numbers(source, 1) == [number]


async def test_a_restart_tells_what_was_lost_from_what_was_done(redis_server, checkpoints) -> None:
    with fresh(redis_server) as (client, key):
        for number in range(10):
            client.xadd(key, {"n": number})
        async with opened(redis_server, checkpoints, key, 0) as source:
            await numbers(source, 10)
            end = (await source.ends())[key]
            await source.settled_below(key, end)
        # Given a stream that forgot all that was done, and nothing else
        client.xadd(key, {"n": 10}, maxlen=1, approximate=False)
        async with opened(redis_server, checkpoints, key, end) as source:
            assert await numbers(source, 1) == [10]
            end = (await source.ends())[key]
            await source.settled_below(key, end)
        # And one that forgot three entries that were not
        for number in range(11, 15):
            client.xadd(key, {"n": number}, maxlen=1, approximate=False)
        async with opened(redis_server, checkpoints, key, end) as source:
            (batch,) = await source.read(10, 1 << 20, 1.0)
            assert (batch.lost_items, batch.payloads) == (3, [b"14"])


async def test_entries_read_again_are_absent_when_deleted_and_lost_when_trimmed(redis_server, checkpoints) -> None:
    with fresh(redis_server) as (client, key):
        ids = [client.xadd(key, {"n": number}) for number in range(10)]
        async with opened(redis_server, checkpoints, key, 0) as source:
            (batch,) = await source.read(10, 1 << 20, 1.0)
            client.xdel(key, ids[6])
            client.xtrim(key, minid=ids[3], approximate=False)
            again = await source.reread(key, batch.positions)
            assert [position for position, _ in again.lost] == batch.positions[:3]
            assert again.absent == [batch.positions[6]]
            assert again.payloads == [b"3", b"4", b"5", b"7", b"8", b"9"]


async def test_a_stream_made_again_goes_on_with_newer_ids_and_stops_at_older_ones(redis_server, checkpoints) -> None:
    with fresh(redis_server) as (client, key):
        client.xadd(key, {"n": 0})
        async with opened(redis_server, checkpoints, key, 0) as source:
            await numbers(source, 1)
            end = (await source.ends())[key]
            client.delete(key)
            client.xadd(key, {"n": 1})
            assert await numbers(source, 1) == [1]
        client.delete(key)
        client.xadd(key, {"n": 2}, id="5-5")
        source = source_of(redis_server, checkpoints, key)
        with pytest.raises(PositionsGone, match=r"made again.*on_recreated"):
            await source.open({key: end})
        await source.close()


async def test_a_stream_made_again_while_it_is_read_is_noticed_and_begun_when_asked_for(redis_server, checkpoints):
    with fresh(redis_server) as (client, key):
        for number in range(10):
            client.xadd(key, {"n": number}, id=f"{number + 1}-0")
        source = source_of(redis_server, checkpoints, key, on_recreated="from_start")
        await source.open({})
        await numbers(source, 10)
        end = (await source.ends())[key]
        await source.settled_below(key, end)
        # When it is deleted and made again, with the same ids and more entries
        client.delete(key)
        for number in range(20):
            client.xadd(key, {"n": 100 + number}, id=f"{number + 1}-0")
        # Then nothing of it is taken for news of the former
        with pytest.raises(NotConnected, match="made again"):
            await numbers(source, 1)
        await source.close()
        # And it is another partition, which is read whole, and goes on
        await source.open({key: end})
        assert await numbers(source, 20) == list(range(100, 120))
        [(name, end)] = (await source.ends()).items()
        assert name == f"{key}@2"
        await source.settled_below(name, end)
        await source.close()
        client.xadd(key, {"n": 120}, id="30-0")
        await source.open({key: 1, name: end})
        assert await numbers(source, 1) == [120]
        # And what is asked for of the former is gone
        assert (await source.reread(key, [1 << 20])).lost == [(1 << 20, 1 << 20)]
        await source.close()


async def test_a_stream_that_lost_its_newest_entries_goes_on(redis_server, checkpoints) -> None:
    with fresh(redis_server) as (client, key):
        # Given a stream that was read to its end, in two steps
        source = source_of(redis_server, checkpoints, key)
        await source.open({})
        for step in range(2):
            for number in range(10):
                client.xadd(key, {"n": 10 * step + number}, id=f"{10 * step + number + 1}-0")
            await numbers(source, 10)
            end = (await source.ends())[key]
            await source.settled_below(key, end)
        await source.close()
        # When its server comes back without its newest entries, as a replica that was behind, and newer ones are added
        client.delete(key)
        for number in range(15):
            client.xadd(key, {"n": number}, id=f"{number + 1}-0")
        client.xadd(key, {"n": 20}, id="50-0")
        # Then they are read, and no other
        await source.open({key: end})
        assert await numbers(source, 1) == [20]
        await source.close()


@pytest.mark.parametrize(("start", "first"), [("earliest", 0), ("2h", 10), ("latest", 20), ("2026-01-31T08:00:00Z", 0)])
async def test_a_first_start_begins_where_it_is_told_to_and_later_ones_there(redis_server, checkpoints, start, first):
    now = SYSTEM_CLOCK.wall()
    with fresh(redis_server) as (client, key):
        # Given a stream with entries of three hours and of one hour ago
        for number in range(20):
            client.xadd(key, {"n": number}, id=f"{int((now - (10_800 if number < 10 else 3600)) * 1000)}-{number + 1}")
        # When it is read first, then its lag is of what is to be read
        source = source_of(redis_server, checkpoints, key, start=start)
        await source.open({})
        assert first == 10 or await source.behind({}) == 20 - first
        if first < 20:
            assert await numbers(source, 20 - first) == [*range(first, 20)]
        await source.close()
        # And one that starts again without a checkpoint reads all that came since
        for number in range(20, 25):
            client.xadd(key, {"n": number})
        again = source_of(redis_server, checkpoints, key, start=start)
        await again.open({})
        assert await numbers(again, 25 - first) == [*range(first, 25)]
        await again.close()
