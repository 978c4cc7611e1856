"""Steps of jobs on SQLite: each is bounded in rows and bytes, however much there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.job import JobItem, JobSpec, TreeSpec
from tailrace.model.workload import Kind
from tailrace.stores.jobs.jobs import Feeding
from tailrace.stores.jobs.sqlite import advance
from tailrace.stores.jobs.sqlite.jobs import SqliteJobs
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile

TREE = TreeSpec("job-1", "t", [JobSpec("f", "f"), JobSpec("g", "g", ("f",), each=True)])
FEEDINGS = [Feeding(Kind(name, 2)) for name in ("f", "g")]
MANY = 12


@pytest.mark.parametrize(("bound", "most"), [("SOME", 3), ("DROPPED_BYTES", 6)])
async def test_what_is_taken_apart_for_a_tree_that_ends_is_dropped_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    # Given a tree with more results that are taken apart than one step drops (three of two bytes each)
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    queue = SqliteQueue(file)
    await file.open()
    await queue.open()
    jobs = SqliteJobs(queue)
    await jobs.create(TREE, FEEDINGS)
    await jobs.add(TREE.id, "", "call", [JobItem(b"1")] * MANY)
    leased = await queue.lease(Demand({Cell("f", 2): MANY}, frozenset(), MANY), 30, 0)
    assert leased is not None
    monkeypatch.setattr(advance, "STEPS", 0)  # nothing is done with jobs but what is asked for below
    ends = [Settle(id, leased.fence, State.SUCCESS, result=b"[]") for id in leased.ids]
    assert await queue.settle(leased.fence, [], ends) == []
    await jobs.change(TREE.id, "cancel", "enough")
    # When steps are taken, one by one
    monkeypatch.setattr(advance, "STEPS", 1)
    monkeypatch.setattr(advance, bound, most)
    left = []
    while not (found := await jobs.show(TREE.id)) or found.state != "cancelled":
        left += [found.jobs[1].pending] if found is not None else []
        await jobs.sweep()
    # Then each drops three of them, and the counters say so
    assert sorted({*left}, reverse=True)[:4] == [12, 9, 6, 3]
    assert await jobs.audit(TREE.id) == []
    await file.close()
