"""Pages of results of jobs on PostgreSQL: a page is bounded where it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tailrace.stores.jobs.postgres import queries


class Results:
    """Results of one job, each of so many bytes; `read` says how many bytes a statement was to answer."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.bytes: list[int] = []

    async def read(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        if "job_results" not in statement:
            return [(1,)]
        _, behind, some, _, _, limit, most = arguments
        self.bytes.append(most)
        there = [(n, size) for n, size in enumerate(self.sizes, 1) if n > behind][: min(some, limit)]
        rows: list[tuple[Any, ...]] = []
        for number, size in there:
            most -= size
            if most < 0 and rows:
                break
            rows.append((0, "a", number, 1, b"x" * size, "", len(there)))
        return rows


async def test_a_page_is_cut_where_its_bytes_are_read() -> None:
    # Given results of which a page holds two
    results = Results(4, 4, 4, 20, 1)
    # When all pages are read
    after, pages = "", []
    while True:
        page = await queries.results(results.read, "tree", after, 100, 10)
        assert page is not None
        pages.append([len(each.result) for each in page.results])
        after = page.after
        if not after:
            break
    # Then the server was told how much a page holds, and none is missing
    assert pages == [[4, 4], [4], [20], [1]]
    assert results.bytes == [10] * 4
