"""Jobs on PostgreSQL take turns: none waits until many others, or large ones, have nothing more to be done."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.job import JobItem, TreeStatus
from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.postgres import advance
from tailrace.stores.jobs.postgres.jobs import PostgresJobs
from tailrace.stores.jobs.postgres.statements import CHANGE, SEAL
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.testing.conformance.jobs_engine import feedings, job, tree_of

#: More trees than two looks take.
MANY = 2 * advance.JOBS + 10


@pytest.fixture
async def jobs(postgres_server: str, postgres_schema: str) -> AsyncIterator[PostgresJobs]:
    """Jobs that do not advance by themselves."""
    options = PostgresQueueOptions(url=postgres_server, schema=postgres_schema, connections=2, notify=False)
    queue = PostgresQueue(options, StoresConfig(durability="relaxed"), SYSTEM_CLOCK, wait=0.1)
    await queue.open()
    yield PostgresJobs(queue)
    await queue.close()


async def _make(jobs: PostgresJobs, id: str, items: int) -> None:
    tree = tree_of(job("a"), id=id)
    await jobs.create(tree, feedings(tree))
    if items:
        await jobs.add(id, "", "call", [JobItem(b"x")] * items)


async def _write(jobs: PostgresJobs, statement: str, *arguments: str) -> None:
    """Runs a statement as a node that dies before it advances a job."""
    await jobs._ground.rows(statement, arguments, "a test")


async def _shown(jobs: PostgresJobs, id: str) -> TreeStatus:
    found = await jobs.show(id)
    assert found is not None
    return found


async def test_an_advance_goes_on_until_all_that_was_appended_is_counted(jobs: PostgresJobs) -> None:
    # Given more jobs that were added to than one look takes
    for n in range(MANY):
        await _make(jobs, f"filled-{n}", 1)
    # When what is due is done, then nothing is left
    assert not await jobs.advance()
    assert await jobs._ground.read("SELECT count(*) FROM S.job_deltas", (), "a look") == [(0,)]


async def test_a_tree_has_its_turn_while_many_older_ones_are_being_cancelled(
    jobs: PostgresJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given more trees than one look takes, of more items than a step cancels, that are being cancelled
    monkeypatch.setattr(advance, "SOME", 1)
    older = [f"older-{n}" for n in range(advance.JOBS + 6)]
    for id in older:
        await _make(jobs, id, 9)
        await _write(jobs, CHANGE, id, "cancel", "enough")
    assert await jobs.advance(3)
    # When a younger one is sealed, and each has had a turn
    await _make(jobs, "younger", 0)
    await _write(jobs, SEAL, "younger", "")
    assert await jobs.advance(2)
    # Then that is complete, and the older ones go on
    assert (await _shown(jobs, "younger")).state == "complete"
    assert (await _shown(jobs, older[0])).pending > 3
    while await jobs.advance(10):
        pass
    assert {(await _shown(jobs, id)).state for id in older} == {"cancelled"}


async def test_what_is_taken_apart_for_a_tree_that_ends_is_dropped_in_steps(
    jobs: PostgresJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a tree with more results that are taken apart than one step drops
    tree = tree_of(job("a"), job("b", "a", each=True))
    await jobs.create(tree, feedings(tree))
    await jobs.add(tree.id, "", "call", [JobItem(b"x")] * 5)
    queue = jobs._queue
    leased = await queue.lease(Demand({Cell(f"{tree.id}:a", 2): 5}, frozenset(), 5), 30, 0)
    assert leased is not None
    ends = [Settle(id, leased.fence, State.SUCCESS, result=b"[]") for id in leased.ids]
    assert await queue.settle(leased.fence, [], ends) == []
    await _write(jobs, CHANGE, tree.id, "cancel", "enough")
    # When steps are taken, then each drops some of them
    monkeypatch.setattr(advance, "SOME", 2)
    pending = []
    while (found := await _shown(jobs, tree.id)).state != "cancelled":
        pending.append(found.jobs[1].pending)
        await jobs.advance(1)
    assert [*dict.fromkeys(pending)][:3] == [5, 3, 1]
    assert await jobs.audit(tree.id) == []
