"""Which settlements share one write of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tailrace.stores.queue.settlements import FEW, GROUP, Settlements, Succeeded


class Store:
    """A store whose writes take as long as `slow` is not set."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.slow = asyncio.Event()
        self.settlements = Settlements(self.write, asyncio.create_task)

    async def write(self, group: Sequence[Succeeded]) -> list[list[str]]:
        self.groups.append([fence for fence, _ in group])
        await self.slow.wait()
        if any(fence < 0 for fence, _ in group):
            raise ValueError("no")
        return [[f"{fence} refused"] for fence, _ in group]

    def settle(self, *claims: tuple[int, int]) -> list[asyncio.Task[list[str]]]:
        """Of each claim so many items."""
        return [asyncio.create_task(self.settlements.add(fence, ["x"] * count)) for fence, count in claims]


async def test_what_comes_in_one_moment_or_while_one_is_written_shares_a_write() -> None:
    store = Store()
    waiting = store.settle((1, 1), (2, 3))
    while not store.groups:
        await asyncio.sleep(0)
    waiting += store.settle((3, 1), (4, 1))
    await asyncio.sleep(0)
    store.slow.set()
    assert await asyncio.gather(*waiting) == [[f"{fence} refused"] for fence in (1, 2, 3, 4)]
    assert store.groups == [[1, 2], [3, 4]]


async def test_a_write_is_bounded() -> None:
    store = Store()
    store.slow.set()
    count = GROUP // FEW
    await asyncio.gather(*store.settle(*((fence, FEW) for fence in range(count + 1))))
    assert store.groups == [[*range(count)], [count]]


async def test_a_failure_is_told_to_those_of_its_write_alone_and_who_left_hears_nothing() -> None:
    store = Store()
    waiting = store.settle((-1, 1), (2, 1))
    while not store.groups:
        await asyncio.sleep(0)
    waiting += store.settle((3, 1), (4, 1))
    await asyncio.sleep(0)
    assert waiting[1].cancel() and waiting[3].cancel()
    store.slow.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in found] == [ValueError, asyncio.CancelledError, list, asyncio.CancelledError]
    assert store.groups == [[-1, 2], [3, 4]]
