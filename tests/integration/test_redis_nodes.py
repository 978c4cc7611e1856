"""The queue on a real Redis: several nodes, restarts, promotions and older copies, and the words for troubles."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator

import pytest
from servers.queue_nodes import RedisNodes

from tailrace.model.claim import Leased, Settle, State
from tailrace.model.demand import Cell, Closed, Demand
from tailrace.model.errors import ConfigError, NotConnected, StoreFull
from tailrace.model.one_item import CHANGED
from tailrace.model.workload import Kind
from tailrace.stores.queue.items import NOW
from tailrace.stores.queue.queue import NewItem, Reschedule
from tailrace.stores.queue.redis.queue import RedisQueue, RedisQueueOptions

MAIL = Kind("mail", 2)
ANY = Demand({Cell("mail", 2): 1000}, frozenset(), 1000)
LEASE = 30.0


@pytest.fixture
async def nodes(redis_server: str) -> AsyncIterator[RedisNodes]:
    nodes = RedisNodes(redis_server)
    yield nodes
    await nodes.close()


@pytest.fixture
async def on(own_redis):
    """Starts servers, each with nodes on it that go by the server's own clock."""
    started: list[RedisNodes] = []

    def start(*settings: str) -> tuple[RedisNodes, object]:
        server = own_redis(*settings)
        started.append(RedisNodes(server.address, real=True))
        return started[-1], server

    yield start
    for nodes in started:
        await nodes.close()


async def writes_its_file_anew(client) -> bool:
    info = await client.info("persistence")
    return bool(info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"])


async def leased(queue: RedisQueue, wait: float = 0.0) -> Leased:
    found = await queue.lease(ANY, LEASE, wait)
    assert found is not None
    return found


async def test_a_poll_that_finds_nothing_writes_nothing(nodes: RedisNodes) -> None:
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"", due=nodes.clock.wall() + 100)])

    async def written() -> int:
        info = await queue._server.call("INFO", "persistence")
        return int(dict(line.split(b":") for line in info.split(b"\r\n") if b":" in line)[b"aof_current_size"])

    before = await written()
    for _ in range(20):
        assert await queue.lease(ANY, LEASE, 0) is None
    assert await written() == before


async def test_behind_a_great_many_shut_items_the_others_are_found(nodes: RedisNodes) -> None:
    # Given more items of a closed tenant than one look passes, and one of another behind them
    queue = await nodes.queue()
    for _ in range(5):
        await queue.submit([NewItem(Kind("mail", 2, "", "ann"), b"") for _ in range(1000)])
    nodes.clock.advance(0.001)
    await queue.submit([NewItem(Kind("mail", 2, "", "bob"), b"found")])
    demand = Demand(ANY.cells, frozenset({Closed("mail", "", "ann")}), 1000)
    found = await queue.lease(demand, LEASE, 20)
    assert found is not None and found.payloads == [b"found"]


async def test_what_is_past_a_bound_is_forgotten_with_its_dedupe_key(nodes: RedisNodes) -> None:
    # Given a full queue, whose items end
    queue = await nodes.queue(max_waiting=10, keep_ended=3)
    await queue.submit([NewItem(MAIL, b"", dedupe_key=f"d{n}") for n in range(10)])
    assert (await queue.submit([NewItem(MAIL, b"", dedupe_key="d1")]))[0].duplicate
    found = await leased(queue)
    await queue.settle(found.fence, found.ids, [])
    # When it is swept, then so many of the ended are kept, the last ones; a forgotten dedupe key is free
    assert await queue.sweep() == 7
    assert await queue.sweep() == 0
    assert [each is None for each in await queue.status(found.ids)] == [True] * 7 + [False] * 3
    assert not (await queue.submit([NewItem(MAIL, b"", dedupe_key="d1")]))[0].duplicate
    nodes.clock.advance(7 * 86_400 + 1)
    assert await queue.sweep() == 3
    tally = await queue.tally()
    assert (tally.taken, tally.forgotten, tally.states["new"]) == (11, 10, 1)


async def test_a_clock_that_is_set_back_prolongs_no_lease(nodes: RedisNodes) -> None:
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"")])
    first = await leased(queue)
    nodes.clock.advance(LEASE + 1)
    nodes.clock.jump(-3600)
    assert await queue.lease(ANY, LEASE, 0) is None
    await queue.submit([NewItem(Kind("other"), b"")])
    nodes.clock.advance(1)
    await queue._claiming.end_leases(int(nodes.clock.wall() * 1e6))
    nodes.clock.advance(LEASE + 1)
    assert (await leased(queue)).fence > first.fence


# Restarts, promotions, copies.


async def test_a_server_that_comes_back_as_one_that_loses_things_is_waited_for(on) -> None:
    # Given a queue in use, whose server comes back as one that throws data away when it is full
    nodes, server = on()
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"")])
    server.program.kill()
    with pytest.raises(NotConnected, match="cannot be reached"):
        await queue.submit([NewItem(MAIL, b"")])
    server.program.start()
    async with RedisQueueOptions(url=nodes.url).client() as admin:
        await admin.config_set("maxmemory-policy", "allkeys-lru")
        # Then that refuses no item for good
        with pytest.raises(NotConnected, match="noeviction"):
            await queue.submit([NewItem(MAIL, b"")])
        # And one that begins with it says so
        with pytest.raises(ConfigError, match="noeviction"):
            await nodes.queue()
        # And once it is mended, the queue goes on
        await admin.config_set("maxmemory-policy", "noeviction")
        await admin.connection_pool.disconnect()
    assert await queue.submit([NewItem(MAIL, b"")])


async def test_a_server_in_use_that_gives_up_its_promises_is_noticed(own_redis) -> None:
    # Given a queue in use, whose operator switches the append-only file off
    nodes = RedisNodes(own_redis().address)
    queue = await nodes.queue()
    ids = [each.id for each in await queue.submit([NewItem(MAIL, b"")])]
    async with RedisQueueOptions(url=nodes.url).client() as admin:
        await admin.config_set("appendonly", "no")
        # When the sweep looks again, then nothing more is accepted, and operators hear why
        nodes.clock.advance(61)
        await queue.sweep()
        with pytest.raises(NotConnected, match="no append-only file"):
            await queue.submit([NewItem(MAIL, b"")])
        assert ["no append-only file" in each.what for each in queue.troubles()] == [True]
        # And once it is switched on again, and written, the queue goes on
        await admin.config_set("appendonly", "yes")
        await admin.connection_pool.disconnect()
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(NotConnected):
                await queue.submit([NewItem(MAIL, b"")])
                break
            await asyncio.sleep(0.01)
    assert queue.troubles() == []
    assert (await leased(queue)).ids[0] == ids[0]
    await nodes.close()


async def test_a_restart_of_a_durable_server_is_gone_through_at_once(on) -> None:
    nodes, server = on()
    queue = await nodes.queue()
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
    nodes, server = on()
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"")])
    await queue.close()
    server.program.kill()
    server.program.start()
    other = await nodes.queue(wait=0.5)
    assert await other.lease(ANY, LEASE, 0) is None
    assert (await leased(other, 20)).attempts == [1]


async def test_after_an_older_copy_was_put_back_nothing_is_leased_for_a_while(on, tmp_path) -> None:
    # Given a copy of the server's files that was made before a claim
    nodes, server = on()
    queue = await nodes.queue(wait=0.5)
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


async def test_what_replicas_must_have_is_not_confirmed_before_also_when_it_is_repeated(on) -> None:
    # Given a queue of which a replica must have every write, and hangs
    nodes, _ = on("--repl-diskless-sync-delay", "0")
    other, replica = on("--replicaof", "127.0.0.1", nodes.url.rpartition(":")[2].partition("/")[0])
    async with RedisQueueOptions(url=other.url).client() as client, asyncio.timeout(20):
        while (await client.info("replication"))["master_link_status"] != "up":
            await asyncio.sleep(0.01)
        await client.connection_pool.disconnect()
    queue = await nodes.queue(replicas=1, timeout=0.5)
    await queue.submit([NewItem(MAIL, b"first")])
    replica.program.freeze()
    # When a submission is made and repeated, then it is not confirmed, although the queue has it
    for _ in range(3):
        with pytest.raises(NotConnected, match="0 of 1 replicas have it"):
            await queue.submit([NewItem(MAIL, b"", dedupe_key="once")])
        await queue._server.dial_anew()
    # And once the replica has it, the repeat is told so
    replica.program.thaw()
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(NotConnected):
                [again] = await queue.submit([NewItem(MAIL, b"", dedupe_key="once")])
                break
    assert again.duplicate


async def test_a_promoted_replica_waits_and_a_replica_is_refused(on) -> None:
    # Given a master with a replica that has everything
    nodes, _ = on("--repl-diskless-sync-delay", "0")
    queue = await nodes.queue(wait=0.5)
    await queue.submit([NewItem(MAIL, b"")])
    other, _ = on("--replicaof", "127.0.0.1", nodes.url.rpartition(":")[2].partition("/")[0])
    other.prefix = nodes.prefix
    options = RedisQueueOptions(url=other.url)
    async with options.client() as client:
        async with asyncio.timeout(20):
            while not await client.exists(f"{queue.base}tasks") or await writes_its_file_anew(client):
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
    nodes, _ = on()
    queue = await nodes.queue()
    ids = [each.id for each in await queue.submit([NewItem(MAIL, b"x" * 1000) for _ in range(10)])]
    first = await queue.lease(Demand(ANY.cells, frozenset(), 5), LEASE, 0)
    assert first is not None
    await queue._server.call("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(StoreFull, match="its maxmemory is reached"):
        await queue.submit([NewItem(MAIL, b"")])
    # Then what waits is moved and shown, those that are out are renewed and end, and others are handed out
    [waits] = [id for id in ids if id not in first.ids][:1]
    assert await queue.reschedule([Reschedule(waits, NOW)]) == [CHANGED]
    seen = await queue.peek(waits, 3)
    assert seen is not None and (seen.payload, seen.size) == (b"xxx", 1000)
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
    nodes, _ = on(*settings)
    with pytest.raises(ConfigError, match=words):
        await nodes.queue(**config)


async def test_a_relaxed_profile_says_what_may_be_lost(on) -> None:
    nodes, _ = on("--appendfsync", "everysec")
    queue = await nodes.queue(durability="relaxed")
    assert "about a second of accepted work may be lost" in queue.profile


async def test_a_wrong_password_is_told(on) -> None:
    nodes, _ = on("--requirepass", "secret")
    queue = await nodes.queue()
    with pytest.raises(NotConnected, match="refuses the user or the password"):
        await queue.submit([NewItem(MAIL, b"")])


async def test_one_claim_that_cannot_be_read_stops_no_other(nodes: RedisNodes) -> None:
    # Given two claims of which one's ids are damaged
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"1"), NewItem(MAIL, b"2")])
    one = Demand(ANY.cells, frozenset(), 1)
    bad, good = await queue.lease(one, LEASE, 0), await queue.lease(one, LEASE, 0)
    assert bad is not None and good is not None
    await queue._server.call("HSET", f"{queue.base}claims", (1).to_bytes(8, "big"), "damaged")
    # When both leases are over, then the other one's items come back
    nodes.clock.advance(LEASE + 1)
    assert (await leased(queue)).ids == good.ids


@pytest.mark.parametrize("wiped", ["heads", "kind:", "firsts:", "ring:", "keyed", "leases", "claims", "out", "ended"])
async def test_what_is_derived_may_be_wiped_and_no_workload_is_lost(nodes: RedisNodes, wiped: str) -> None:
    # Given workloads that wait, wait for an older one of their key, are out, and have ended
    queue = await nodes.queue(keep_ended=1)
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
    nodes.clock.advance(LEASE + 1)
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
