"""Lists of jobs for callers with rights of their own."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tailrace.gateway.guarded_jobs import PAGES, GuardedJobs
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
        assert await GuardedJobs(cast(Any, trees)).jobs("", after, limit) == page.trees
        return [each.id for each in page.trees], page.after
    finally:
        RIGHTS.reset(token)


async def listed(trees: Trees, limit: int, after: str = "") -> list[str]:
    return (await paged(trees, limit, after))[0]


async def test_ones_own_jobs_are_seen_behind_those_of_others():
    # Given more newer jobs of others than one page has
    others = 2 * MOST_TREES + 1
    trees = Trees(["other"] * others + ["thumbnail"] * 3)
    # When somebody lists jobs who may read others only
    # Then one's own are there, and the next page goes on behind the last of them
    assert await listed(trees, 2) == [f"job-{others}", f"job-{others + 1}"]
    assert await listed(trees, 2, f"job-{others + 1}") == [f"job-{others + 2}"]


async def test_a_call_reads_a_bounded_number_of_pages_and_says_where_to_go_on():
    # Given one's own job behind more of others than one call looks at
    others = (PAGES + 2) * MOST_TREES
    trees = Trees(["other"] * others + ["thumbnail"])
    # When it is looked for
    found, after = await paged(trees, 50)
    # Then a call reads so many pages, and the next one goes on behind them
    assert (found, after, trees.pages) == ([], f"job-{PAGES * MOST_TREES - 1}", 2 * PAGES)
    assert await paged(trees, 50, after) == ([f"job-{others}"], "")


async def test_a_page_ends_with_the_last_that_it_shows_where_there_are_more():
    trees = Trees(["thumbnail", "other", "thumbnail", "thumbnail"])
    assert await paged(trees, 2) == (["job-0", "job-2"], "job-2")
    assert await paged(trees, 2, "job-2") == (["job-3"], "")
    assert await paged(trees, 3) == (["job-0", "job-2", "job-3"], "")


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
