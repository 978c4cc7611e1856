"""Which submissions share one write of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tailrace.sdk.model.workload import Kind
from tailrace.stores.queue.group import BYTES, GROUP, Submissions
from tailrace.stores.queue.queue import NewItem, Submitted


def items(count: int, size: int = 0) -> list[NewItem]:
    return [NewItem(Kind("f"), b"x" * size) for _ in range(count)]


async def test_what_waits_shares_a_write_up_to_a_number_and_a_size() -> None:
    # Given submissions that wait, small, many and large
    stored: list[int] = []

    async def store(group: Sequence[NewItem]) -> list[Submitted]:
        stored.append(len(group))
        return [Submitted(str(number), False) for number in range(len(group))]

    submissions = Submissions(store)
    sizes = ((1,), (2,), (GROUP - 3,), (1,), (1, BYTES + 1), (1, 1), (1, 1))
    waiting = [submissions.add(items(*each)) for each in sizes]
    # When they are stored
    await submissions.run()
    # Then each group has so many at most, or so many bytes, but for one that is larger by itself
    assert stored == [GROUP, 1, 1, 2]
    assert [len(future.result()) for future in waiting] == [1, 2, GROUP - 3, 1, 1, 1, 1]


async def test_a_failure_is_told_to_those_of_its_group_alone() -> None:
    async def store(group: Sequence[NewItem]) -> list[Submitted]:
        if len(group) > 1:
            raise ValueError("no")
        return [Submitted("1", False)]

    submissions = Submissions(store)
    waiting = [submissions.add(items(*each)) for each in ((1,), (1,), (1, BYTES + 1))]
    await submissions.run()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in found] == [ValueError, ValueError, list]
