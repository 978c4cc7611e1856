"""Claims on PostgreSQL while somebody submits more urgent work."""

from __future__ import annotations

from servers.queue_nodes import PostgresNodes

from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.queue.claim_sizes import BESIDE, SOON
from tailrace.stores.queue.queue import NewItem

URGENT, LATER = Kind("urgent", 0), Kind("later", 2)
DEMAND = Demand({Cell("urgent", 0): 1000, Cell("later", 2): 1000}, frozenset(), 1000)


async def test_a_claim_takes_what_was_submitted_and_few_of_what_waits(nodes: PostgresNodes) -> None:
    # Given a backlog, and an urgent item that somebody submits beside it
    queue = await nodes.queue()
    await queue.submit([NewItem(LATER, b"1")] * (3 * BESIDE))
    await queue.submit([NewItem(URGENT, b"1")])

    # When it is claimed, Then few are claimed with it
    leased = await queue.lease(DEMAND, 30.0, 0)
    assert leased is not None and len(leased.ids) == BESIDE
    assert leased.kinds.count(URGENT) == 1

    # When nobody has submitted for a while, Then all are claimed
    nodes.clock.advance(2 * SOON)
    leased = await queue.lease(DEMAND, 30.0, 0)
    assert leased is not None and len(leased.ids) == 2 * BESIDE + 1
