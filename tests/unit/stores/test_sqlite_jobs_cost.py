"""Jobs cost plain items nothing: while no tree is open, no statement of the queue asks for their tables."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import InvalidRequest
from tailrace.model.job import JobItem, JobSpec, TreeSpec
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.engines import NoJobs, jobs_beside
from tailrace.stores.jobs.jobs import Feeding
from tailrace.stores.jobs.sqlite.jobs import SqliteJobs
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile

KIND = Kind("f", 2)
TREE = TreeSpec("job-1", "t", [JobSpec("f", "f")])
#: Trees of two jobs, and how these are fed.
TREES, FED = 30, [Feeding(KIND), Feeding(Kind("g", 2), b"<", b">")]


async def test_no_statement_of_plain_items_asks_for_jobs_before_a_tree_or_after_it(tmp_path: Path) -> None:
    # Given a queue in which a tree was open, and is complete
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    queue = SqliteQueue(file)
    await file.open()
    await queue.open()
    jobs = SqliteJobs(queue)
    await jobs.create(TREE, [Feeding(KIND)])
    await jobs.seal("job-1", "")
    # When plain items are submitted, claimed, renewed, settled in each way and cancelled
    said: list[str] = []

    def listen(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(said.append)

    await file.write(listen)
    ids = [each.id for each in await queue.submit([NewItem(KIND, b"1")] * 4)]
    leased = await queue.lease(Demand({Cell("f", 2): 3}, frozenset(), 3), 30, 0)
    assert leased is not None
    assert list(leased.jobs) == []
    await queue.renew(leased.ids, leased.fence, 30, State.PROCESSING)
    back = Settle(leased.ids[1], leased.fence, State.RETRIABLE_FAILURE, attempts=1)
    await queue.settle(leased.fence, leased.ids[:1], [back, Settle(leased.ids[2], leased.fence, State.FATAL_FAILURE)])
    await queue.cancel(ids[3:])
    # Then nothing of jobs was read or written
    assert len(said) > 10
    assert [each for each in said if "job" in each] == []
    await file.close()


async def test_trees_that_a_settlement_meets_for_the_first_time_are_read_together(tmp_path: Path) -> None:
    # Given items of many trees, which the writer does not know yet, and a job behind each that gets their results
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    queue = SqliteQueue(file)
    await file.open()
    await queue.open()
    jobs = SqliteJobs(queue)
    for number in range(TREES):
        await jobs.create(TreeSpec(f"job-{number}", "t", [JobSpec("f", "f"), JobSpec("g", "g", ("f",))]), FED)
        await jobs.add(f"job-{number}", "", "call", [JobItem(b"%d" % number)] * 2)
    leased = await queue.lease(Demand({Cell("f", 2): 2 * TREES}, frozenset(), 2 * TREES), 30, 0)
    assert leased is not None
    # When all of them are settled
    said: list[str] = []

    def listen(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(said.append)

    await file.write(listen)
    results = [
        Settle(id, leased.fence, State.SUCCESS, result=payload)
        for id, payload in zip(leased.ids, leased.payloads, strict=True)
    ]
    assert await queue.settle(leased.fence, [], results) == []
    # Then one statement read the trees' jobs and one those behind them
    assert sum("JOIN job_trees" in each and "most_failed" in each for each in said) == 1
    assert sum("JOIN job_parents" in each and "j.prefix" in each for each in said) == 1
    # And each job behind got its own parents' results, around which its bytes are
    for number in range(TREES):
        tree = await jobs.show(f"job-{number}")
        assert tree is not None
        assert [(each.pending, each.succeeded) for each in tree.jobs] == [(0, 2), (2, 0)]
    fed = await queue.lease(Demand({Cell("g", 2): 2 * TREES}, frozenset(), 2 * TREES), 30, 0)
    assert fed is not None
    assert sorted(fed.payloads) == sorted(b"<%d>" % number for number in [*range(TREES)] * 2)
    await file.close()


@pytest.mark.parametrize(("engine", "name"), [("redis", "Redis")])
async def test_an_engine_without_jobs_refuses_them_and_says_what_to_use(engine: str, name: str) -> None:
    jobs = NoJobs(name)
    for call in (
        jobs.create(TREE, [Feeding(KIND)]),
        jobs.add("job-1", "", "call", [JobItem(b"1")]),
        jobs.seal("job-1", ""),
        jobs.results("job-1", "", 1, 1),
        jobs.change("job-1", "cancel", ""),
        jobs.audit("job-1"),
    ):
        with pytest.raises(InvalidRequest, match=rf"a queue on {name} keeps no jobs: .*`queue: {{engine: postgres}}`"):
            await call
    assert await jobs.trees("", "", 10) == []
    config = StoresConfig.model_construct(queue={"engine": engine})
    assert isinstance(jobs_beside(object(), config), NoJobs)  # type: ignore[arg-type]
