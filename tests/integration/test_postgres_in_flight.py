"""The queue on PostgreSQL while other statements are in flight: steps are short, and touch nothing of each other's."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from servers.queue_nodes import PostgresNodes

from tailrace.model.claim import State
from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem

MAIL = Kind("mail", 2)
ANY = Demand({Cell("mail", 2): 1000}, frozenset(), 1000)
LEASE = 30.0


async def test_a_renewal_beside_a_return_that_is_being_written_renews_the_others(nodes: PostgresNodes) -> None:
    # Given a claim of three, one of which is just being given back: the row is changed, and not committed
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"")] * 3)
    leased = await queue.lease(ANY, LEASE, 0)
    assert leased is not None
    back, _, kept = leased.ids
    with psycopg.connect(nodes.url) as other:
        other.execute(
            f"UPDATE {nodes.schema}.tasks SET state = 1, claim = NULL, next_trigger = due, fence = fence + 1"
            " WHERE id = %s",
            (int(back, 16),),
        )
        # When two of them are renewed meanwhile
        renewing = asyncio.create_task(queue.renew([back, kept], leased.fence, LEASE, State.PROCESSING))
        async with asyncio.timeout(10):
            while not await nodes.run("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                await asyncio.sleep(0.01)
        other.commit()
    # Then the other one is, and what was given back waits
    assert (await renewing).lost == [back]
    [waiting, out] = [status for status in await queue.status([back, kept]) if status is not None]
    assert (waiting.state, out.state) == (State.RETRIABLE_FAILURE, State.PROCESSING)


async def test_a_slot_of_any_size_is_forgotten_in_steps(nodes: PostgresNodes) -> None:
    # Given more items in one slot, each with a dedupe key and attempts, than one step takes
    queue = await nodes.queue(retention=100.0, keep_ended=1_000_000)
    [one] = await queue.submit([NewItem(MAIL, b"")])
    leased = await queue.lease(ANY, LEASE, 0)
    assert leased is not None and await queue.settle(leased.fence, leased.ids, []) == []
    await nodes.run(
        "INSERT INTO S.ended (slot, id, kind, state, flags, attempts, crashes, fence, ended)"
        " SELECT e.slot, n, e.kind, e.state, 24, 1, 0, 1, e.ended FROM S.ended AS e, generate_series(1, 45000) AS n"
    )
    await nodes.run(
        "INSERT INTO S.dedupe (function, key, id) SELECT 'f', n::text, n FROM generate_series(1, 45000) AS n"
    )
    await nodes.run("INSERT INTO S.tries (id, tries) SELECT n, '[]' FROM generate_series(1, 45000) AS n")
    await nodes.run("INSERT INTO S.counts (state, slot, items) SELECT state, slot, 45000 FROM S.ended WHERE id > 45000")
    await nodes.run("INSERT INTO S.counts (state, items) VALUES (100, 45000)")
    for seconds in (0, 30, 101):  # it is filled from now on, another one is, and its time is over
        nodes.clock.advance(seconds)
        assert seconds > 100 or await queue.sweep() == 0
    # When it is past its retention, then it goes in steps, the last of which empties it
    assert [await queue.sweep() for _ in range(4)] == [20_000, 20_000, 45_001, 0]
    for table in ("ended", "dedupe", "tries"):
        assert await nodes.run(f"SELECT count(*) FROM S.{table}") == [(0,)]
    tally = await queue.tally()
    assert (tally.taken, tally.forgotten, sum((await queue.counts()).values())) == (45_001, 45_001, 0)
    assert (await queue.status([one.id])) == [None]


async def test_a_servers_clock_that_is_set_forward_ends_no_lease(
    postgres_server: str, postgres_schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a claim, by the server's own clock
    nodes = PostgresNodes(postgres_server, postgres_schema, real=True)
    queue = await nodes.queue(poll=0.1)
    ids = [each.id for each in await queue.submit([NewItem(MAIL, b"")] * 3)]
    leased = await queue.lease(ANY, LEASE, 0)
    assert leased is not None and leased.ids == ids
    # When that clock is set forward, beyond the end of the claim
    await nodes.run(
        "CREATE OR REPLACE FUNCTION S.now_micros(at bigint) RETURNS bigint LANGUAGE sql AS"
        f" 'SELECT coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {int(3 * LEASE * 1e6)})'"
    )
    async with asyncio.timeout(10):
        while "the clock of the server was set forward" not in caplog.text:
            # Then nobody else has what it holds
            assert await queue.lease(ANY, LEASE, 0) is None
            await asyncio.sleep(0.02)
    assert await queue.lease(ANY, LEASE, 0) is None
    # And who holds it goes on
    assert await queue.settle(leased.fence, ids, []) == []
    await nodes.close()
