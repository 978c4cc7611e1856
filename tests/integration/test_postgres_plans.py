"""Plans that PostgreSQL makes for a queue's functions where its statistics are of another hour."""

from __future__ import annotations

import asyncio

from servers.queue_nodes import PostgresNodes

from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.queue.engines import OpenQueue
from tailrace.stores.queue.queue import NewItem

MAIL = Kind("mail", 2)
ITEMS, CLAIM = 2_048, 256
TABLES = ("tasks", "entities")


async def claimed(queue: OpenQueue) -> int:
    """Claims and settles all that waits. Returns how many claims it took."""
    claims = 0
    while (leased := await queue.lease(Demand({Cell("mail", 2): CLAIM}, frozenset(), CLAIM), 30.0, 0)) is not None:
        claims += 1
        await queue.settle(leased.fence, leased.ids, [])
    return claims


async def rows_read(nodes: PostgresNodes) -> dict[str, int]:
    """Number of rows read by an index, by table, once the sessions that ended have reported it."""
    before: dict[str, int] = {}
    while True:
        found = await nodes.run(
            f"SELECT relname, idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = '{nodes.schema}'"
        )
        counts = {name: int(count) for name, count in found if name in TABLES}
        if counts == before and min(counts.values()) >= ITEMS:
            return counts
        before = counts
        await asyncio.sleep(0.1)


async def test_a_claim_reads_its_own_rows_after_a_vacuum_of_almost_empty_tables(nodes: PostgresNodes) -> None:
    queue = await nodes.queue()
    # Given sessions that planned when a vacuum had found next to nothing
    await queue.submit([NewItem(MAIL, b"one")])
    for table in TABLES:
        await nodes.run(f"ALTER TABLE {nodes.schema}.{table} SET (autovacuum_enabled = off)")
        await nodes.run(f"VACUUM (ANALYZE) {nodes.schema}.{table}")
    assert await claimed(queue) == 1
    # When many items come, are claimed, and end
    for first in range(0, ITEMS, CLAIM):
        await queue.submit([NewItem(MAIL, b"%d" % number) for number in range(first, first + CLAIM)])
    assert await claimed(queue) == ITEMS // CLAIM
    # Then each row was read a few times, and not once for each claim
    await queue.close()
    for table, count in (await rows_read(nodes)).items():
        assert count < 4 * ITEMS, table
