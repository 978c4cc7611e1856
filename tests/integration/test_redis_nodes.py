"""The queue on a real Redis: several nodes, restarts, promotions and older copies, and what troubles are called."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import uuid
from collections.abc import AsyncIterator

import pytest

from tailrace.sdk.model.claim import Leased, Settle, State
from tailrace.sdk.model.demand import Cell, Closed, Demand
from tailrace.sdk.model.errors import ConfigError, InvalidRequest, NotConnected, Overloaded, StoreFull
from tailrace.sdk.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.redis.queue import RedisQueue, RedisQueueOptions
from tailrace.stores.queue.redis.roll import RedisRoll
from tailrace.testing.clock import ManualClock

MAIL = Kind("mail", 2)
ANY = Demand({Cell("mail", 2): 1000}, frozenset(), 1000)
LEASE = 30.0


class Bench:
    """A prefix of its own on a server, under a clock of the test's own unless `real`."""

    def __init__(self, url: str, *, real: bool = False) -> None:
        self.url, self.prefix, self.clock, self._real = url, f"t-{uuid.uuid4()}", ManualClock(), real
        self._queues: list[RedisQueue] = []

    async def queue(self, *, wait: float = 40.0, notify: bool = False, **config: object) -> RedisQueue:
        given = {"store_time": lambda: int(self.clock.wall() * 1e6), "clock": self.clock} if not self._real else {}
        queue = RedisQueue(
            RedisQueueOptions(url=self.url, prefix=self.prefix, timeout=5, notify=notify),
            StoresConfig(**config),
            wait=wait,
            **given,
        )
        self._queues.append(queue)
        await queue.open()
        return queue

    async def close(self) -> None:
        for queue in self._queues:
            await queue.close()
        options = RedisQueueOptions(url=self.url)
        async with options.client() as client:
            with contextlib.suppress(Exception):
                if keys := [key async for key in client.scan_iter(f"{{{self.prefix}}}:*")]:
                    await client.delete(*keys)
            await client.connection_pool.disconnect()


@pytest.fixture
async def bench(redis_server: str) -> AsyncIterator[Bench]:
    bench = Bench(redis_server)
    yield bench
    await bench.close()


@pytest.fixture
async def on(own_redis):
    """A bench on a server of its own, by the server's own clock, and that server."""
    benches: list[Bench] = []

    def start(*settings: str) -> tuple[Bench, object]:
        server = own_redis(*settings)
        benches.append(Bench(server.address, real=True))
        return benches[-1], server

    yield start
    for bench in benches:
        await bench.close()


async def leased(queue: RedisQueue, wait: float = 0.0) -> Leased:
    found = await queue.lease(ANY, LEASE, wait)
    assert found is not None
    return found


# Several nodes.


async def test_nodes_that_share_a_queue_never_have_one_item_twice(bench: Bench) -> None:
    # Given three nodes and many items, some of them in the order of their keys
    nodes = [await bench.queue() for _ in range(3)]
    await asyncio.gather(
        *(node.submit([NewItem(MAIL, b"", key=f"k{n % 7}" if n % 3 else "") for n in range(100)]) for node in nodes)
    )
    seen: list[str] = []

    async def work(node: RedisQueue) -> None:
        while found := await node.lease(Demand({Cell("mail", 2): 10}, frozenset(), 10), LEASE, 0.05):
            seen.extend(found.ids)
            assert (await node.renew(found.ids, found.fence, LEASE, State.PROCESSING)).lost == []
            assert await node.settle(found.fence, found.ids, []) == []

    # When they work at once
    while len(seen) < 300:
        await asyncio.gather(*map(work, nodes))
    # Then each item was handed out once, and every node counts the same
    assert len(seen) == len(set(seen)) == 300
    for node in nodes:
        assert (await node.counts())["success"] == 300
    tally = await nodes[0].tally()
    assert (tally.taken, tally.forgotten, tally.states["success"]) == (300, 0, 300)


async def test_what_another_node_submits_is_hinted(bench: Bench) -> None:
    one, other = await bench.queue(notify=True), await bench.queue(notify=True)
    await asyncio.wait_for(asyncio.gather(one._hints.listening.wait(), other._hints.listening.wait()), 20)
    waiting = asyncio.create_task(one.lease(ANY, LEASE, 30))
    await other.submit([NewItem(MAIL, b"here")])
    found = await asyncio.wait_for(waiting, 20)
    assert found is not None and found.payloads == [b"here"]


async def test_pollers_are_counted_until_they_leave_or_are_silent(bench: Bench) -> None:
    # Given two nodes, of which one polls
    one, other = await bench.queue(), await bench.queue()
    assert await one.lease(ANY, LEASE, 0.01) is None
    roll = RedisRoll(other._server, other.base)
    async with asyncio.timeout(20):
        while await roll.count("b", here=False) < 1:
            await asyncio.sleep(0.001)
    # When another one says that it is there, and falls silent
    assert await roll.count("b", here=True) == 2
    await other._server.call("ZINCRBY", f"{other.base}pollers", -80_000_000, "b")
    # Then it is counted no more, and nor is who was closed
    assert await roll.count("c", here=True) == 2
    await one.close()
    assert await roll.count("c", here=False) == 1


async def test_a_poll_that_finds_nothing_writes_nothing(bench: Bench) -> None:
    queue = await bench.queue()
    await queue.submit([NewItem(MAIL, b"", due=bench.clock.wall() + 100)])

    async def written() -> int:
        info = await queue._server.call("INFO", "persistence")
        return int(dict(line.split(b":") for line in info.split(b"\r\n") if b":" in line)[b"aof_current_size"])

    before = await written()
    for _ in range(20):
        assert await queue.lease(ANY, LEASE, 0) is None
    assert await written() == before


async def test_a_cancelled_wait_loses_no_claim(bench: Bench) -> None:
    # Given a lease that is cancelled while its claim is under way
    queue = await bench.queue()
    await queue.submit([NewItem(MAIL, b"")])
    waiting = asyncio.create_task(queue.lease(ANY, LEASE, 30))
    await asyncio.sleep(0)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    # Then the item is had by the next one, without a lease that has to end first
    assert len((await leased(queue, 20)).ids) == 1


async def test_behind_a_great_many_shut_items_the_others_are_found(bench: Bench) -> None:
    # Given more items of a closed tenant than one look passes, and one of another behind them
    queue = await bench.queue()
    for _ in range(5):
        await queue.submit([NewItem(Kind("mail", 2, "", "ann"), b"") for _ in range(1000)])
    bench.clock.advance(0.001)
    await queue.submit([NewItem(Kind("mail", 2, "", "bob"), b"found")])
    demand = Demand(ANY.cells, frozenset({Closed("mail", "", "ann")}), 1000)
    found = await queue.lease(demand, LEASE, 20)
    assert found is not None and found.payloads == [b"found"]


async def test_bounds(bench: Bench) -> None:
    queue = await bench.queue(max_waiting=10, keep_ended=3)
    await queue.submit([NewItem(MAIL, b"", dedupe_key=f"d{n}") for n in range(10)])
    with pytest.raises(Overloaded, match="holds 10 workloads and takes at most 10"):
        await queue.submit([NewItem(MAIL, b"")])
    assert (await queue.submit([NewItem(MAIL, b"", dedupe_key="d1")]))[0].duplicate
    with pytest.raises(InvalidRequest, match="more than 2000 bytes"):
        await queue.submit([NewItem(MAIL, b"", key="x" * 2001)])
    with pytest.raises(InvalidRequest, match="half a character"):
        await queue.submit([NewItem(MAIL, b"", key="\ud800")])
    found = await leased(queue)
    await queue.settle(found.fence, found.ids, [])
    # When it is swept, then so many of the ended are kept, the last ones; a forgotten dedupe key is free
    assert await queue.sweep() == 7
    assert await queue.sweep() == 0
    assert [each is None for each in await queue.status(found.ids)] == [True] * 7 + [False] * 3
    assert not (await queue.submit([NewItem(MAIL, b"", dedupe_key="d1")]))[0].duplicate
    bench.clock.advance(7 * 86_400 + 1)
    assert await queue.sweep() == 3
    tally = await queue.tally()
    assert (tally.taken, tally.forgotten, tally.states["new"]) == (11, 10, 1)


async def test_a_clock_that_is_set_back_prolongs_no_lease(bench: Bench) -> None:
    queue = await bench.queue()
    await queue.submit([NewItem(MAIL, b"")])
    first = await leased(queue)
    bench.clock.advance(LEASE + 1)
    bench.clock.jump(-3600)
    assert await queue.lease(ANY, LEASE, 0) is None
    await queue.submit([NewItem(Kind("other"), b"")])
    bench.clock.advance(1)
    await queue._end_leases(int(bench.clock.wall() * 1e6))
    bench.clock.advance(LEASE + 1)
    assert (await leased(queue)).fence > first.fence


# Restarts, promotions, copies.


async def test_a_restart_of_a_durable_server_is_gone_through_at_once(on) -> None:
    bench, server = on()
    queue = await bench.queue()
    await queue.submit([NewItem(MAIL, b"1"), NewItem(MAIL, b"2")])
    first = await queue.lease(Demand(ANY.cells, frozenset(), 1), LEASE, 0)
    server.program.kill()
    with pytest.raises(NotConnected, match="cannot be reached"):
        await queue.submit([NewItem(MAIL, b"")])
    server.program.start()
    # Then what is out is still its holder's, the rest is had at once, and fences rise
    second = await leased(queue, 20)
    assert first is not None and second.payloads != first.payloads
    assert second.fence > first.fence
    assert (await queue.renew(first.ids, first.fence, LEASE, State.PROCESSING)).lost == []
    assert await queue.settle(first.fence, first.ids, []) == []


async def test_who_did_not_know_the_former_server_waits(on) -> None:
    bench, server = on()
    queue = await bench.queue()
    await queue.submit([NewItem(MAIL, b"")])
    await queue.close()
    server.program.kill()
    server.program.start()
    other = await bench.queue(wait=0.5)
    assert await other.lease(ANY, LEASE, 0) is None
    assert (await leased(other, 20)).attempts == [1]


async def test_after_an_older_copy_was_put_back_nothing_is_leased_for_a_while(on, tmp_path) -> None:
    # Given a copy of the server's files that was made before a claim
    bench, server = on()
    queue = await bench.queue(wait=0.5)
    await queue.submit([NewItem(MAIL, b"")])
    shutil.copytree(server._folder, tmp_path / "copy")
    first = await leased(queue)
    # When the server comes back with the copy
    server.program.kill()
    shutil.rmtree(server._folder)
    shutil.copytree(tmp_path / "copy", server._folder)
    server.program.start()
    # Then the item is not handed out again until its holder's lease is over, and then under a higher fence
    with contextlib.suppress(NotConnected):
        assert await queue.lease(ANY, LEASE, 0) is None  # by the connection that was cut
    assert await queue.lease(ANY, LEASE, 0.2) is None
    assert await queue.renew(first.ids, first.fence, LEASE, State.PROCESSING) == (LEASE, first.ids, [])
    assert (await leased(queue, 20)).fence > first.fence


async def test_a_promoted_replica_waits_and_a_replica_is_refused(on) -> None:
    # Given a master with a replica that has everything
    bench, _ = on("--repl-diskless-sync-delay", "0")
    queue = await bench.queue(wait=0.5)
    await queue.submit([NewItem(MAIL, b"")])
    other, _ = on("--replicaof", "127.0.0.1", bench.url.rpartition(":")[2].partition("/")[0])
    other.prefix = bench.prefix
    options = RedisQueueOptions(url=other.url)
    async with options.client() as client:
        async with asyncio.timeout(20):
            while not await client.exists(f"{queue.base}tasks"):
                await asyncio.sleep(0.01)
        # When it is asked as it is, then it is refused
        replica = await other.queue(wait=0.5)
        with pytest.raises(NotConnected, match="is a replica"):
            await replica.submit([NewItem(MAIL, b"")])
        # When it is promoted, then it hands nothing out for the lease of a source
        first = await leased(queue)
        await client.execute_command("REPLICAOF", "NO", "ONE")
        await client.connection_pool.disconnect()
    assert await replica.lease(ANY, LEASE, 0) is None
    await replica.submit([NewItem(MAIL, b"")])
    assert (await leased(replica, 20)).fence > first.fence


# Troubles.


async def test_a_full_server_refuses_submissions_and_takes_ends(on) -> None:
    # Given a server whose memory is full, and workloads that are out
    bench, _ = on()
    queue = await bench.queue()
    await queue.submit([NewItem(MAIL, b"x" * 1000) for _ in range(10)])
    first = await queue.lease(Demand(ANY.cells, frozenset(), 5), LEASE, 0)
    assert first is not None
    await queue._server.call("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(StoreFull, match="its maxmemory is reached"):
        await queue.submit([NewItem(MAIL, b"")])
    # Then they are renewed and end, and others are handed out
    assert (await queue.renew(first.ids, first.fence, LEASE, State.PROCESSING)).lost == []
    back = Settle(first.ids[0], first.fence, State.RETRIABLE_FAILURE, attempts=1, reason="r", outcome="retry")
    assert await queue.settle(first.fence, first.ids[1:], [back]) == []
    assert len((await leased(queue)).ids) == 6
    assert await queue.cancel(first.ids[:1]) == ["requested"]
    # When there is room again, it goes on by itself
    await queue._server.call("CONFIG", "SET", "maxmemory", "0")
    await queue.submit([NewItem(MAIL, b"")])


@pytest.mark.parametrize(
    ("settings", "config", "words"),
    [
        (("--maxmemory-policy", "allkeys-lru"), {}, "maxmemory-policy allkeys-lru"),
        (("--appendfsync", "everysec"), {}, "has appendfsync everysec.*CONFIG SET appendfsync always"),
        (("--no-appendfsync-on-rewrite", "yes"), {}, "CONFIG SET no-appendfsync-on-rewrite no"),
        (("--appendonly", "no"), {"durability": "relaxed"}, "no append-only file.*CONFIG SET appendonly yes"),
    ],
)
async def test_a_server_that_cannot_keep_a_queue_is_refused(on, settings, config, words: str) -> None:
    bench, _ = on(*settings)
    with pytest.raises(ConfigError, match=words):
        await bench.queue(**config)


async def test_a_relaxed_profile_says_what_may_be_lost(on) -> None:
    bench, _ = on("--appendfsync", "everysec")
    queue = await bench.queue(durability="relaxed")
    assert "about a second of accepted work may be lost" in queue.profile


async def test_a_wrong_password_is_told(on) -> None:
    bench, _ = on("--requirepass", "secret")
    queue = await bench.queue()
    with pytest.raises(NotConnected, match="refuses the user or the password"):
        await queue.submit([NewItem(MAIL, b"")])


async def test_one_claim_that_cannot_be_read_stops_no_other(bench: Bench) -> None:
    # Given two claims of which one's ids are damaged
    queue = await bench.queue()
    await queue.submit([NewItem(MAIL, b"1"), NewItem(MAIL, b"2")])
    one = Demand(ANY.cells, frozenset(), 1)
    bad, good = await queue.lease(one, LEASE, 0), await queue.lease(one, LEASE, 0)
    assert bad is not None and good is not None
    await queue._server.call("HSET", f"{queue.base}claims", (1).to_bytes(8, "big"), "damaged")
    # When both leases are over, then the other one's items come back
    bench.clock.advance(LEASE + 1)
    assert (await leased(queue)).ids == good.ids


@pytest.mark.parametrize("wiped", ["heads", "lane:", "keyed", "leases", "claims", "out", "ended"])
async def test_what_is_derived_may_be_wiped_and_no_workload_is_lost(bench: Bench, wiped: str) -> None:
    # Given workloads that wait, wait for an older one of their key, are out, and have ended
    queue = await bench.queue(keep_ended=1)
    await queue.submit([NewItem(MAIL, b"") for _ in range(2)])
    one = Demand(ANY.cells, frozenset(), 1)
    done, _ = await queue.lease(one, LEASE, 0), await queue.lease(one, LEASE, 0)
    assert done is not None
    await queue.settle(done.fence, done.ids, [])
    await queue.submit([NewItem(MAIL, b"", key="k" if n % 2 else "") for n in range(6)])
    # When an operator wipes what is derived of them
    keys = await queue._server.call("KEYS", f"{queue.base}{wiped}*")
    await queue._server.call("DEL", *keys)
    while await queue.sweep():
        pass
    # Then all of them end
    bench.clock.advance(LEASE + 1)
    ended = 0
    while ended < 7:
        found = await leased(queue, 5.0)
        assert await queue.settle(found.fence, found.ids, []) == []
        ended += len(found.ids)
    assert ended == 7 and await queue.lease(ANY, LEASE, 0) is None
    while await queue.sweep():
        pass
    tally = await queue.tally()
    assert (tally.taken, tally.forgotten, tally.states["success"]) == (8, 7, 1)
