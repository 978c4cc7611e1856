"""Sizes of claims: few items while somebody submits, and all of them where a job's own items are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.job import JobItem, JobSpec, TreeSpec
from tailrace.model.workload import FLIGHT_ITEMS, Kind
from tailrace.stores.jobs.jobs import Feeding
from tailrace.stores.jobs.sqlite.jobs import SqliteJobs
from tailrace.stores.queue.claim_sizes import BESIDE, SOON, ClaimSizes
from tailrace.stores.queue.intake import Callback
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.claim import BESIDE_ITEMS, BESIDE_MICROS
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

FIRST, SECOND = Kind("f", 2), Kind("g", 2)
DEMAND = Demand({Cell("f", 2): 1000, Cell("g", 2): 1000}, frozenset(), 1000)


@pytest.mark.parametrize(
    ("submitted", "after", "claimed", "most"),
    [
        ([0], 0.0, [0, 2], BESIDE),
        ([0], 0.0, [2], BESIDE),
        ([0, 2], SOON * 0.9, [1], BESIDE),
        ([0], SOON * 1.1, [2], FLIGHT_ITEMS),
        ([0], 0.0, [0], FLIGHT_ITEMS),
        ([2], 0.0, [0, 1, 2], FLIGHT_ITEMS),
        ([], 0.0, [0, 2], FLIGHT_ITEMS),
    ],
)
def test_a_claim_takes_few_of_what_is_less_urgent_than_what_somebody_submits(
    submitted: list[int], after: float, claimed: list[int], most: int
) -> None:
    # Given submissions of these priorities, when a claim that may take those comes so much later
    beside = ClaimSizes()
    beside.submitted(submitted, 100.0)

    # Then it takes few where some of them are less urgent
    assert beside.most(claimed, 100.0 + after) == most


async def test_items_that_come_of_others_make_no_claim_small(tmp_path: Path) -> None:
    # Given items of a tree that were added a while ago
    clock = ManualClock()
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    queue = SqliteQueue(file, clock=clock)
    await file.open()
    await queue.open()
    jobs = SqliteJobs(queue)
    feedings = [Feeding(FIRST), Feeding(SECOND)]
    await jobs.create(TreeSpec("job-1", "t", [JobSpec("f", "f"), JobSpec("g", "g", ("f",))]), feedings)
    await jobs.add("job-1", "", "call", [JobItem(b"1")] * (2 * BESIDE_ITEMS))
    clock.advance(2e-6 * BESIDE_MICROS)

    # When they end, and make as many of the next job in this moment
    leased = await queue.lease(DEMAND, 30, 0)
    assert leased is not None and len(leased.ids) == 2 * BESIDE_ITEMS
    await queue.settle(leased.fence, [], [Settle(id, leased.fence, State.SUCCESS, result=b"1") for id in leased.ids])

    # Then the next claim takes all of these
    leased = await queue.lease(DEMAND, 30, 0)
    assert leased is not None and len(leased.ids) == 2 * BESIDE_ITEMS

    # But where somebody submits it takes few
    await queue.submit([NewItem(FIRST, b"1")] * (2 * BESIDE_ITEMS))
    leased = await queue.lease(DEMAND, 30, 0)
    assert leased is not None and len(leased.ids) == BESIDE_ITEMS
    await file.close()


async def test_what_tells_of_the_end_of_a_tree_makes_no_claim_small(tmp_path: Path) -> None:
    # Given many items that were submitted a while ago, and a tree of one item whose end is told
    clock = ManualClock()
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    queue = SqliteQueue(file, clock=clock)
    await file.open()
    await queue.open()
    jobs = SqliteJobs(queue)
    await queue.submit([NewItem(SECOND, b"1")] * (2 * BESIDE_ITEMS))
    await jobs.create(TreeSpec("job-1", "t", [JobSpec("f", "f")]), [Feeding(FIRST)], Callback(Kind("told", 1)))
    await jobs.add("job-1", "", "call", [JobItem(b"1")])
    await jobs.seal("job-1", "")
    clock.advance(2e-6 * BESIDE_MICROS)

    # When it ends in this moment
    leased = await queue.lease(Demand({Cell("f", 2): 1}, frozenset(), 1), 30, 0)
    assert leased is not None
    await queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, State.SUCCESS, result=b"1")])
    told = await queue.lease(Demand({Cell("told", 1): 1}, frozenset(), 1), 30, 0)
    assert told is not None and len(told.ids) == 1

    # Then a claim takes all of the others, since nobody submitted what tells of it
    leased = await queue.lease(DEMAND, 30, 0)
    assert leased is not None and len(leased.ids) == 2 * BESIDE_ITEMS
    await file.close()
