"""The scripts of the queue in Redis, run by fakeredis: their indexes, their trust in a home, and servers that are
refused."""

from __future__ import annotations

import asyncio

import pytest
from fakeredis import FakeAsyncRedis, FakeServer
from redis import exceptions

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import ConfigError, NotConnected
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.redis.queue import RedisQueue, RedisQueueOptions
from tailrace.stores.redis.server import RedisServer, Script
from tailrace.testing.clock import ManualClock

MAIL = Kind("mail", 2)
ANY = Demand({Cell("mail", 2): 1000}, frozenset(), 1000)
RUN = {"run_id": "one", "uptime_in_seconds": "0"}
GOOD = {"redis_version": "7.0.15", "role": "master", "maxmemory_policy": "noeviction", "aof_enabled": "1"}


class Pretended(FakeAsyncRedis):
    """A client of fakeredis, which knows neither INFO nor CONFIG, nor the flags in the first line of a script."""

    facts = GOOD
    server = RUN
    fsync = b"always"

    async def execute_command(self, *command, **options):
        if command[0] == "EVALSHA":
            raise exceptions.NoScriptError
        if command[0] == "CONFIG":
            return [b"appendfsync", self.fsync]
        if command[0] == "EVAL":
            text = command[1].partition("\n")[2]
            if "'everything'" in text:
                return "".join(f"{name}:{value}\r\n" for name, value in self.facts.items()).encode()
            told = "\\r\\n".join(f"{name}:{value}" for name, value in self.server.items())
            command = ("EVAL", text.replace("redis.pcall('INFO', 'server')", f"'{told}'"), *command[2:])
        return await super().execute_command(*command, **options)


def queue_of(server: FakeServer, clock: ManualClock, **config: object) -> RedisQueue:
    return RedisQueue(
        RedisQueueOptions(),
        StoresConfig(**config),
        clock,
        wait=36.0,
        clients=lambda: (Pretended(server=server), FakeAsyncRedis(server=server)),
        store_time=lambda: int(clock.wall() * 1e6),
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def queue(clock: ManualClock):
    queue = queue_of(FakeServer(), clock)
    await queue.open()
    yield queue
    await queue.close()


async def test_an_items_whole_life(queue: RedisQueue, clock: ManualClock) -> None:
    [(first, _), (second, _)] = await queue.submit([NewItem(MAIL, b"1", key="k"), NewItem(MAIL, b"2", key="k")])
    assert int(second, 16) == int(first, 16) + 1
    leased = await queue.lease(ANY, 30, 0)
    assert leased is not None
    assert (leased.ids, leased.payloads, leased.fence) == ([first], [b"1"], int(clock.wall() * 1e6))
    back = Settle(first, leased.fence, State.RETRIABLE_FAILURE, delay=5, attempts=1, reason="r", outcome="retry")
    assert await queue.settle(leased.fence, [], [back]) == []
    assert await queue.lease(ANY, 30, 0) is None
    clock.advance(6)
    again = await queue.lease(ANY, 30, 0)
    assert again is not None and again.attempts == [2]
    assert await queue.settle(leased.fence, [first], []) == [first]
    assert await queue.settle(again.fence, [first], []) == []
    last = await queue.lease(ANY, 30, 0)
    assert last is not None and last.ids == [second]
    await queue.settle(last.fence, [second], [])
    # Then nothing is left but what is told of them
    keys = await Pretended.keys(queue._server._client(0), "*")
    names = sorted(key.decode().removeprefix(queue.base) for key in keys)
    assert names == [
        "counts", "ended", "kind_numbers", "kinds", "lane_numbers", "meta", "reasons", "tasks", "tries"
    ]  # fmt: skip
    [tried] = (await queue.tries([first]))[first]
    assert tried.reason == "r"


async def test_the_index_has_the_first_of_each_lane(queue: RedisQueue, clock: ManualClock) -> None:
    now = clock.wall()
    await queue.submit([NewItem(MAIL, b"", due=now + due) for due in (9, 5)])
    await queue.submit([NewItem(Kind("report"), b"", due=now + 7)])

    async def heads() -> list[float]:
        lanes = [lane.to_bytes(4, "big") for lane in (1, 2)]
        found = [await queue._server.call("ZSCORE", f"{queue.base}heads", lane) for lane in lanes]
        return [float(score) / 1e6 - now for score in found]

    assert await heads() == [5, 7]
    clock.advance(6)
    leased = await queue.lease(ANY, 30, 0)
    assert leased is not None
    assert await heads() == [9, 7]


@pytest.mark.parametrize(
    ("started_before", "silence", "durability", "forgot", "quiet"),
    [
        (0, 5, "durable", 0, 0),  # the same one, started again
        (60, 5, "durable", 0, 36),  # it was there before we lost the other one: promoted
        (0, 100, "durable", 0, 36),  # nobody knows what it was meanwhile
        (0, 5, "relaxed", 0, 36),  # its last second may be gone
        (0, 5, "durable", 1, 36),  # a claim that we know of is gone
    ],
)
async def test_which_home_is_trusted(
    clock: ManualClock, monkeypatch, started_before: int, silence: int, durability: str, forgot: int, quiet: int
) -> None:
    # Given a queue that made a claim
    server = FakeServer()
    queue = queue_of(server, clock, durability=durability)
    await queue.open()
    await queue.submit([NewItem(MAIL, b""), NewItem(MAIL, b"")])
    one = Demand(ANY.cells, frozenset(), 1)
    assert await queue.lease(one, 30, 0) is not None
    # When a server answers that has another id
    clock.advance(silence)
    monkeypatch.setattr(Pretended, "server", {"run_id": "two", "uptime_in_seconds": str(started_before)})
    if forgot:
        await queue._server.call("HSET", f"{queue.base}meta", "position", 0)
    assert await queue.lease(one, 30, 0) is None
    # Then it leases at once, or when the lease of a source is over
    clock.advance(max(0, quiet - 0.1))
    assert (await queue.lease(one, 30, 0) is None) is (quiet > 0)
    clock.advance(0.2)
    assert (await queue.lease(one, 30, 0) is None) is (quiet == 0)
    await queue.close()


async def test_on_an_older_copy_the_kinds_are_those_of_the_copy(clock: ManualClock, monkeypatch) -> None:
    # Given two nodes that know two kinds, and a server that knows the first alone: it was put back
    server = FakeServer()
    one, other = queue_of(server, clock, durability="relaxed"), queue_of(server, clock, durability="relaxed")
    for queue in (one, other):
        await queue.open()
        await queue.submit([NewItem(MAIL, b""), NewItem(Kind("second", 2), b"")])
    await one._server.call("LTRIM", f"{one.base}kinds", 0, 0)
    for name in ("kind_numbers", "lane_numbers", "tasks", "heads"):
        await one._server.call("DEL", f"{one.base}{name}")
    await one._server.call("HSET", f"{one.base}meta", "lanes", 1)
    monkeypatch.setattr(Pretended, "server", {"run_id": "two", "uptime_in_seconds": "0"})
    # When they submit, each a kind that it does not have
    [(third, _)] = await one.submit([NewItem(Kind("third", 2), b"")])
    [(second, _)] = await other.submit([NewItem(Kind("second", 2), b"")])
    # Then each item has its own kind, for both of them
    for queue in (one, other):
        assert [each and each.kind.function for each in await queue.status([third, second])] == ["third", "second"]
        await queue.close()


@pytest.mark.parametrize(
    ("facts", "fsync", "durability", "error", "words"),
    [
        ({"maxmemory_policy": "volatile-lru"}, b"always", "durable", ConfigError, "maxmemory-policy volatile-lru"),
        ({"aof_enabled": "0"}, b"always", "relaxed", ConfigError, "CONFIG SET appendonly yes"),
        ({}, b"everysec", "durable", ConfigError, "has appendfsync everysec"),
        ({"redis_version": "6.2.1"}, b"always", "durable", ConfigError, "expected Redis 7 or newer"),
        ({"cluster_enabled": "1"}, b"always", "durable", ConfigError, "`cluster: true`"),
        ({"role": "slave"}, b"always", "durable", NotConnected, "is a replica"),
    ],
)
async def test_servers_that_are_refused(
    clock: ManualClock, monkeypatch, facts: dict[str, str], fsync: bytes, durability: str, error, words: str
) -> None:
    dialled: list[RedisServer] = []

    async def dial_anew(server: RedisServer) -> None:
        dialled.append(server)

    monkeypatch.setattr(Pretended, "facts", GOOD | facts)
    monkeypatch.setattr(Pretended, "fsync", fsync)
    monkeypatch.setattr(RedisServer, "dial_anew", dial_anew)  # fakeredis has a pool of its own
    queue = queue_of(FakeServer(), clock, durability=durability)
    with pytest.raises(error, match=words):
        await queue.submit([NewItem(MAIL, b"")])
    # Then only a replica's name may lead to another server by now
    assert bool(dialled) == (error is NotConnected)
    await queue.close()


async def test_a_relaxed_server_says_what_may_be_lost(clock: ManualClock, monkeypatch) -> None:
    monkeypatch.setattr(Pretended, "fsync", b"everysec")
    queue = queue_of(FakeServer(), clock, durability="relaxed")
    await queue.open()
    assert "about a second of accepted work may be lost" in queue.profile
    await queue.close()


async def test_a_submission_takes_a_lease_that_waits_along(queue: RedisQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a lease that waits
    await queue.submit([NewItem(MAIL, b"")])
    leased = await queue.lease(ANY, 30, 0)
    assert leased is not None and await queue.settle(leased.fence, leased.ids, []) == []
    said = list[str]()
    run = queue._ground.run

    async def listens(script: Script, *arguments: object, about: str) -> object:
        said.append(about)
        return await run(script, *arguments, about=about)

    monkeypatch.setattr(queue._ground, "run", listens)
    waits = asyncio.create_task(queue.lease(ANY, 30, 20.0))
    while not queue._poller.waiting:
        await asyncio.sleep(0.001)
    # When two are submitted, one of them with all that an item may have
    said.clear()
    stored = await queue.submit([NewItem(MAIL, b"1", headers=(("a", "b"),), dedupe_key="d"), NewItem(MAIL, b"2")])
    leased = await waits
    # Then one script did it, they are out like any other, and everything adds up
    assert said == ["a submission"]
    assert leased is not None and (leased.ids, leased.payloads) == ([each.id for each in stored], [b"1", b"2"])
    assert leased.extras[0].headers == (("a", "b"),)
    assert {status.state for status in await queue.status(leased.ids) if status} == {State.ENQUEUED}
    counted = await Pretended.hgetall(queue._server._client(0), f"{queue.base}counts")
    assert {int(state): int(count) for state, count in counted.items() if int(count)} == {
        2: 2,
        int(State.SUCCESS): 1,
    }
    assert await queue.lease(ANY, 30, 0) is None
    assert await queue.settle(leased.fence, leased.ids, []) == []
    # And what cannot be told from what came before is not handed out twice
    waits = asyncio.create_task(queue.lease(ANY, 30, 20.0))
    while not queue._poller.waiting:
        await asyncio.sleep(0.001)
    [again, fresh] = await queue.submit([NewItem(MAIL, b"1", dedupe_key="d"), NewItem(MAIL, b"3")])
    leased = await waits
    assert again == (stored[0].id, True)
    assert leased is not None and leased.ids == [fresh.id]
