"""Lists of jobs for callers with rights of their own."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tailrace.gateway.guarded_jobs import PAGES, GuardedJobs
from tailrace.gateway.job_desk import MOST_TREES
from tailrace.model.errors import InvalidRequest
from tailrace.model.job import JobHolder, JobStatus, ResultPage, TreeStatus
from tailrace.model.rights import right_of
from tailrace.wire.callers import RIGHTS, GrantedRights


class Trees:
    """Trees of these functions, the newest first; `pages` were read."""

    def __init__(self, functions: list[str]) -> None:
        self.pages = 0
        self.all = [
            TreeStatus(
                f"job-{n}", "t", "", "running", "continue", "", 0.0, jobs=[JobStatus("a", name, [], True, False)]
            )
            for n, name in enumerate(functions)
        ]

    async def jobs(self, state: str = "", after: str = "", limit: int = 100) -> list[TreeStatus]:
        self.pages += 1
        begin = next((n + 1 for n, each in enumerate(self.all) if each.id == after), 0)
        return self.all[begin : begin + limit]


async def listed(trees: Trees, limit: int, after: str = "") -> list[str]:
    """What somebody sees who may read `thumbnail` alone."""
    token = RIGHTS.set(GrantedRights("ann", (right_of("read:thumbnail"),)))
    try:
        return [each.id for each in await GuardedJobs(cast(Any, trees)).jobs("", after, limit)]
    finally:
        RIGHTS.reset(token)


async def test_ones_own_jobs_are_seen_behind_those_of_others():
    # Given more newer jobs of others than one page has
    others = 2 * MOST_TREES + 1
    trees = Trees(["other"] * others + ["thumbnail"] * 3)
    # When somebody lists jobs who may read others only
    # Then one's own are there, and the next page goes on behind the last of them
    assert await listed(trees, 2) == [f"job-{others}", f"job-{others + 1}"]
    assert await listed(trees, 2, f"job-{others + 1}") == [f"job-{others + 2}"]


async def test_a_list_reads_a_bounded_number_of_pages():
    trees = Trees(["other"] * ((PAGES + 2) * MOST_TREES))
    assert await listed(trees, 50) == []
    assert trees.pages == PAGES


class Gathers:
    """A tree whose job `sum` gathers, and in which one item of it runs."""

    async def job(self, tree: str, wait: float = 0.0, item: str = "") -> TreeStatus:
        assert (tree, item) == ("", "w")
        jobs = [JobStatus("split", "split", [], False, True), JobStatus("sum", "add_up", ["split"], True, True)]
        return TreeStatus("job-1", "t", "", "running", "continue", "", 0.0, jobs=jobs, job_of_item="sum")

    async def gathered(self, holder: JobHolder, after: str = "", limit: int = 1000) -> ResultPage:
        return ResultPage([], "more")


@pytest.mark.parametrize(("right", "may"), [("run:add_up", True), ("run:split", False), ("read:add_up", False)])
async def test_who_may_run_a_function_reads_what_its_items_gather(right: str, may: bool):
    token = RIGHTS.set(GrantedRights("ann", (right_of(right),)))
    try:
        call = GuardedJobs(cast(Any, Gathers())).gathered(JobHolder("w", 1))
        if may:
            assert (await call).after == "more"
        else:
            with pytest.raises(InvalidRequest, match="it needs the right run:add_up"):
                await call
    finally:
        RIGHTS.reset(token)
