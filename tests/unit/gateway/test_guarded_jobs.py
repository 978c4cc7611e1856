"""Lists of jobs for callers with rights of their own."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tailrace.gateway.guarded_jobs import GuardedJobs
from tailrace.gateway.job_desk import MOST_TREES
from tailrace.model.errors import InvalidRequest
from tailrace.model.grants import GrantedRights
from tailrace.model.job import JobHolder, JobStatus, ResultPage, TreePage, TreeStatus
from tailrace.model.rights import right_of
from tailrace.wire.callers import RIGHTS


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

    async def job_page(self, state: str = "", after: str = "", limit: int = 100) -> TreePage:
        self.pages += 1
        begin = next((n + 1 for n, each in enumerate(self.all) if each.id == after), 0)
        found = self.all[begin : begin + limit]
        return TreePage(found, found[-1].id if len(found) == limit else "")


async def paged(trees: Trees, limit: int, after: str = "") -> tuple[list[str], str]:
    """The page that a user sees who may read `thumbnail` alone, and where to go on."""
    token = RIGHTS.set(GrantedRights("ann", (right_of("read:thumbnail"),)))
    try:
        page = await GuardedJobs(cast(Any, trees)).job_page("", after, limit)
        return [each.id for each in page.trees], page.after
    finally:
        RIGHTS.reset(token)


async def test_a_call_reads_one_page_of_all_and_says_where_to_go_on():
    # Given one's own jobs behind and between those of others
    trees = Trees(["other", "other", "thumbnail", "other", "thumbnail"])
    # When a page of two is asked for, then two trees are read, and the next page goes on behind them
    assert (await paged(trees, 2), trees.pages) == (([], "job-1"), 1)
    assert await paged(trees, 2, "job-1") == (["job-2"], "job-3")
    assert await paged(trees, 2, "job-3") == (["job-4"], "")


async def test_a_list_without_pages_looks_among_the_newest_of_all():
    trees = Trees(["other"] * (MOST_TREES - 2) + ["thumbnail"] * 4)
    token = RIGHTS.set(GrantedRights("ann", (right_of("read:thumbnail"),)))
    try:
        guarded = GuardedJobs(cast(Any, trees))
        assert [each.id for each in await guarded.jobs()] == [f"job-{MOST_TREES - 2}", f"job-{MOST_TREES - 1}"]
        assert [each.id for each in await guarded.jobs(limit=1)] == [f"job-{MOST_TREES - 2}"]
    finally:
        RIGHTS.reset(token)


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
