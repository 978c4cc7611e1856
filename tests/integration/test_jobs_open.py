"""Very many open trees: their bound, and the cost of one more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from servers.queue_nodes import PostgresNodes

from tailrace.model.errors import Overloaded
from tailrace.model.job import JobSpec, TreeSpec
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.engines import jobs_beside
from tailrace.stores.jobs.jobs import Feeding, Jobs
from tailrace.stores.jobs.postgres.jobs import PostgresJobs
from tailrace.stores.jobs.rules import refusals
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile

KIND = Kind("f", 2)
#: Trees that are open, and that are made beside them.
OPEN, MADE = 5_000, 20


@pytest.fixture(params=["sqlite", "postgres"])
async def jobs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Jobs]:
    if request.param == "postgres":
        nodes = PostgresNodes(*(request.getfixturevalue(f"postgres_{name}") for name in ("server", "schema")))
        yield PostgresJobs(await nodes.queue())
        await nodes.close()
        return
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    queue = SqliteQueue(file)
    await file.open()
    await queue.open()
    yield jobs_beside(queue, StoresConfig())
    await file.close()


async def make(jobs: Jobs, name: str) -> bool:
    return await jobs.create(TreeSpec(name, "t", [JobSpec("f", "f")]), [Feeding(KIND)])


async def test_no_more_trees_are_open_than_may_be_and_another_has_room_when_any_is_over(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given as many open trees as may be
    monkeypatch.setattr(refusals, "MOST_OPEN", 3)
    for name in ("first", "second", "third"):
        assert await make(jobs, name)
    # When there is one more, Then it is refused
    with pytest.raises(Overloaded, match="at most 3 may be"):
        await make(jobs, "fourth")
    # When one in the middle is over, Then one has room, and no other
    await jobs.seal("second", "")
    assert await make(jobs, "fourth")
    with pytest.raises(Overloaded, match="at most 3 may be"):
        await make(jobs, "fifth")


async def test_a_tree_is_made_without_a_look_at_each_one_that_is_open(nodes: PostgresNodes) -> None:
    # Given thousands of open trees
    queue = await nodes.queue()
    await nodes.run(
        f"INSERT INTO {nodes.schema}.job_trees (id, type, key, policy, most_failed, created_by, created_at, definition)"
        f" SELECT 'open-' || n, 't', '', 'continue', 0, '', 0, '' FROM generate_series(1, {OPEN}) AS n"
    )
    # When some more are made
    for number in range(MADE):
        assert await make(PostgresJobs(queue), f"made-{number}")
    # Then few of those rows were read, once the sessions that ended have told it
    await queue.close()
    look = (
        "SELECT n_tup_ins, coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_user_tables"
        f" WHERE schemaname = '{nodes.schema}' AND relname = 'job_trees'"
    )
    while (found := [(int(made), int(read)) for made, read in await nodes.run(look)])[0][0] < OPEN + MADE:
        await asyncio.sleep(0.1)
    assert found[0][1] < OPEN
