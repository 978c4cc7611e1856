"""Keys on PostgreSQL while leases end beside settlements of their holders: they are locked in one order."""

from __future__ import annotations

import asyncio

import psycopg
from servers.queue_nodes import PostgresNodes

from tailrace.model.claim import Leased
from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.shared_settlements import Succeeded

MAIL = Kind("mail", 2)
LEASE = 30.0


async def waiting_for_a_lock(nodes: PostgresNodes, count: int) -> None:
    """Waits until `count` sessions of this test wait for the lock of a key."""
    async with asyncio.timeout(20):
        while True:
            [(found,)] = await nodes.run(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'"
                f" AND query LIKE '%{nodes.schema}%'"
            )
            if found >= count:
                return
            await asyncio.sleep(0.01)


async def test_leases_that_end_beside_a_settlement_of_their_keys_meet_no_deadlock(nodes: PostgresNodes) -> None:
    queue, other = await nodes.queue(), await nodes.queue()
    # Given two keys in the order in which they are locked, and claims of which each has one of them and another item
    await queue.submit([NewItem(MAIL, b"")])
    names = await nodes.run(
        "SELECT n FROM (VALUES ('a'), ('b')) AS v (n) ORDER BY hashtextextended(n, 7)",
    )
    first, last = (name for (name,) in names)
    two = Demand({Cell("mail", 2): 2}, frozenset(), 2)
    one_by_one = Demand({Cell("mail", 2): 1}, frozenset(), 1)
    assert await queue.lease(one_by_one, LEASE, 0) is not None
    claims: list[Leased] = []
    ids: dict[str, str] = {}
    for key in (last, first):  # the lease of the last one ends first
        [item, _] = await queue.submit([NewItem(MAIL, key.encode(), key=key), NewItem(MAIL, b"beside")])
        ids[key] = item.id
        leased = await queue.lease(two, LEASE, 0)
        assert leased is not None and item.id in leased.ids and len(leased.ids) == 2
        claims.append(leased)
        nodes.clock.advance(0.001)
        await queue.submit([NewItem(MAIL, b"next", key=key)])
    nodes.clock.advance(LEASE + 1)
    [(before,)] = await nodes.run("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    async with await psycopg.AsyncConnection.connect(nodes.url) as stranger:
        # When somebody has the last key just now, while the leases end and the holder settles both
        await stranger.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7))", (last,))
        ending = asyncio.create_task(other.lease(one_by_one, LEASE, 0))
        await waiting_for_a_lock(nodes, 1)
        group = [Succeeded(each.fence, [ids[key]]) for each, key in zip(claims, (last, first), strict=True)]
        settling = asyncio.create_task(queue._succeed(group))
        await waiting_for_a_lock(nodes, 2)
        await stranger.rollback()
    # Then both get on at once, and what ended with its lease is refused
    assert await asyncio.wait_for(settling, 20) == [[ids[last]], [ids[first]]]
    assert await asyncio.wait_for(ending, 20) is not None
    async with asyncio.timeout(20):  # the server tells of deadlocks a moment later
        await nodes.run("SELECT pg_stat_force_next_flush()")
        [(after,)] = await nodes.run("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert after == before
    # And each key goes on with its oldest item
    got: list[bytes] = []
    while (leased := await queue.lease(Demand({Cell("mail", 2): 9}, frozenset(), 9), LEASE, 0)) is not None:
        got += leased.payloads
        await queue.settle(leased.fence, leased.ids, [])
    assert got.count(b"next") == 2
