"""Submissions and settlements that share one write of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tailrace.model.errors import NotConnected
from tailrace.model.workload import Kind
from tailrace.stores.queue.group import GROUP, submissions
from tailrace.stores.queue.queue import NewItem, Submitted
from tailrace.stores.queue.settlements import FEW, Succeeded, settlements
from tailrace.stores.queue.settlements import GROUP as ENDS

#: A fence.
BROKEN = 1 << 40


class Store:
    """A store whose writes take as long as `slow` is not set; a settlement of the fence BROKEN breaks its
    connection, and one of a negative fence is nothing that can be written."""

    def __init__(self) -> None:
        self.writes: list[list[int]] = []
        self.slow = asyncio.Event()
        self.settlements = settlements(self.end, asyncio.create_task)
        self.submissions = submissions(self.store, asyncio.create_task)

    async def end(self, group: Sequence[Succeeded]) -> list[list[str]]:
        self.writes.append([fence for fence, _ in group])
        await self.slow.wait()
        if any(fence == BROKEN for fence, _ in group):
            raise NotConnected("it broke")
        if any(fence < 0 for fence, _ in group):
            raise ValueError("no")
        return [[f"{fence} refused"] for fence, _ in group]

    async def store(self, items: Sequence[NewItem]) -> list[Submitted]:
        self.writes.append([len(items)])
        return [Submitted(str(number), False) for number in range(len(items))]

    def settle(self, *claims: tuple[int, int]) -> list[asyncio.Task[list[str]]]:
        """Settles so many items of each claim."""
        adding = [self.settlements.add(Succeeded(fence, ["x"] * count)) for fence, count in claims]
        return [asyncio.create_task(each) for each in adding]

    async def written(self) -> None:
        while not self.writes:
            await asyncio.sleep(0)


def items(count: int, size: int = 0) -> list[NewItem]:
    return [NewItem(Kind("f"), b"x" * size) for _ in range(count)]


async def test_what_comes_in_one_moment_or_while_one_is_written_shares_a_write() -> None:
    # Given settlements of one moment, and some that come while those are written
    store = Store()
    waiting = store.settle((1, 1), (2, 3))
    await store.written()
    waiting += store.settle((3, 1), (4, 1))
    await asyncio.sleep(0)
    # When the writes end, then there were two, and each settlement has its own answer
    store.slow.set()
    assert await asyncio.gather(*waiting) == [[f"{fence} refused"] for fence in (1, 2, 3, 4)]
    assert store.writes == [[1, 2], [3, 4]]


async def test_a_write_of_settlements_has_so_many_items_at_most() -> None:
    store = Store()
    store.slow.set()
    count = ENDS.items // FEW
    await asyncio.gather(*store.settle(*((fence, FEW) for fence in range(count + 1))))
    assert store.writes == [[*range(count)], [count]]


async def test_a_write_of_submissions_has_so_many_items_or_bytes_at_most_but_for_one_that_is_larger() -> None:
    # Given submissions of one moment, small, many and large
    store = Store()
    sizes = ((1,), (2,), (GROUP.items - 3,), (1,), (1, GROUP.size + 1), (1, 1), (1, 1))
    # When they are stored
    answers = await asyncio.gather(*(store.submissions.add(items(*each)) for each in sizes))
    # Then the groups are within both bounds, and each submission has the answers for its own items, in their order
    assert store.writes == [[GROUP.items], [1], [1], [2]]
    assert [len(each) for each in answers] == [1, 2, GROUP.items - 3, 1, 1, 1, 1]
    assert [each.id for each in answers[1]] == ["1", "2"]


async def test_a_failure_is_told_to_those_of_its_write_alone_and_who_left_hears_nothing() -> None:
    # Given a write that will fail, one behind it, and in each somebody who leaves
    store = Store()
    waiting = store.settle((BROKEN, 1), (2, 1))
    await store.written()
    waiting += store.settle((3, 1), (4, 1))
    await asyncio.sleep(0)
    assert waiting[1].cancel() and waiting[3].cancel()
    # When they are written
    store.slow.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    # Then who stayed in the first is told, and the other write is as if nothing had been
    assert [type(each) for each in found] == [NotConnected, asyncio.CancelledError, list, asyncio.CancelledError]
    assert store.writes == [[BROKEN, 2], [3, 4]]


async def test_what_cannot_be_written_fails_alone_and_the_others_of_its_write_are_written_in_their_order() -> None:
    # Given a write of several, of which two can never be written, and who leaves meanwhile
    store = Store()
    waiting = store.settle((1, 1), (-2, 1), (3, 1), (-4, 1), (5, 1))
    await store.written()
    assert waiting[4].cancel()
    # When it is written
    store.slow.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    # Then those two are told, and the others are answered
    assert [type(each) for each in found] == [list, ValueError, list, ValueError, asyncio.CancelledError]
    assert [found[0], found[2]] == [["1 refused"], ["3 refused"]]
    assert store.writes == [[1, -2, 3, -4, 5], [1], [-2], [3], [-4], [5]]
    # And a broken connection, of which nobody knows what it kept, is told to all
    store.writes.clear()
    found = await asyncio.gather(*store.settle((1, 1), (BROKEN, 1)), return_exceptions=True)
    assert [type(each) for each in found] == [NotConnected, NotConnected]
    assert store.writes == [[1, BROKEN]]
