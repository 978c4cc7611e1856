"""A submission that takes a waiting lease along: the leases that it may reserve, and items that are never lost by
it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tailrace.model.claim import Leased, Settle, State
from tailrace.model.demand import Cell, Closed, Demand
from tailrace.model.workload import Kind
from tailrace.stores.queue.hand_over import MOST, Taker, Takers
from tailrace.stores.queue.poller import Poller
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.waiting import WaitingClaims

MAIL, REPORT = Kind("mail", 2), Kind("report", 2)
ITEM = NewItem(MAIL, b"")
FOUND = Leased(7, 30.0, [MAIL], ["a"], [b""], [1])


def wanting(total: int = 10, *closed: Closed, each: int = 10) -> Demand:
    return Demand({Cell("mail", 2): each}, frozenset(closed), total)


class World:
    """Leases that wait, over a store that has nothing."""

    def __init__(self) -> None:
        self.settled: list[str] = []
        self.looks = 0
        self.looking: asyncio.Event | None = None
        self.waiting = WaitingClaims(self._settle, Poller(60.0, None))

    async def _settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        self.settled += [each.id for each in others if each.state is State.NEW]
        return []

    async def _look(self) -> Leased | float:
        self.looks += 1
        if self.looking is not None:
            await self.looking.wait()
        return 60.0

    def lease(self, wait: float = 60.0) -> asyncio.Task[Leased | None]:
        return asyncio.create_task(self.waiting.lease(wanting(), 30.0, self._look, wait, lambda: 0.0))

    async def reserved(self) -> Taker:
        """The first taker that may be reserved."""
        while True:
            if (taker := self.waiting.takers.reserve([ITEM])) is not None:
                return taker
            await asyncio.sleep(0)


async def test_only_what_it_wants_whole_and_at_once_is_taken_along() -> None:
    for demand, items, fits in (
        (wanting(), [ITEM], True),
        (wanting(), [ITEM, ITEM], True),
        (wanting(), [NewItem(REPORT, b"")], False),
        (wanting(), [NewItem(MAIL, b"", due=9e9)], False),
        (wanting(), [NewItem(MAIL, b"", key="k")], False),
        (wanting(1), [ITEM, ITEM], False),
        (wanting(1000), [ITEM] * (MOST + 1), False),
        (wanting(10, Closed("mail")), [ITEM], False),
        (wanting(10, Closed("mail", "", "t")), [ITEM], True),  # beside another's closed cell
        (wanting(10, Closed("mail", "", "t")), [ITEM, NewItem(MAIL._replace(tenant="t"), b"")], False),
        (wanting(each=0), [ITEM], False),
    ):
        takers = Takers(lambda future: None)
        takers.add(Taker(demand, 30.0))
        assert (takers.reserve(items) is not None) is fits, (demand, items)
        if fits:  # and by one submission only
            assert takers.reserve(items) is None


async def test_what_is_brought_ends_the_wait_without_another_look() -> None:
    world = World()
    lease = world.lease()
    taker = await world.reserved()
    looks = world.looks
    world.waiting.bring(taker, FOUND)
    assert await lease is FOUND and world.looks == looks <= 1


async def test_who_is_brought_nothing_goes_on_waiting_and_may_be_reserved_again() -> None:
    world = World()
    lease = world.lease()
    world.waiting.bring(await world.reserved(), None)
    taker = await world.reserved()
    assert not lease.done()
    world.waiting.bring(taker, FOUND)
    assert await lease is FOUND


async def test_who_looks_is_not_reserved_and_after_a_wake_everybody_looks_first() -> None:
    world = World()
    world.looking = asyncio.Event()
    lease = world.lease()
    while not world.looks:
        await asyncio.sleep(0)
    assert world.waiting.takers.reserve([ITEM]) is None
    world.looking.set()
    await world.reserved()
    assert lease.cancel()
    # And when something else is due
    another = world.lease()
    while world.waiting.poller.waiting == 0:
        await asyncio.sleep(0)
    world.waiting.wake()
    assert world.waiting.takers.reserve([ITEM]) is None
    await world.reserved()
    assert another.cancel()


async def test_a_submission_waits_a_moment_for_who_looks_and_wants_it() -> None:
    world = World()
    world.looking = asyncio.Event()
    lease = world.lease()
    while not world.looks:
        await asyncio.sleep(0)
    # Nobody waits for one that does not want it
    await world.waiting.takers.ready([NewItem(REPORT, b"")])
    ready = asyncio.create_task(world.waiting.takers.ready([ITEM]))
    await asyncio.sleep(0)
    assert not ready.done()
    world.looking.set()
    await ready
    assert world.waiting.takers.reserve([ITEM]) is not None
    assert lease.cancel()


async def test_a_submission_waits_for_nobody_whose_look_takes_long() -> None:
    world = World()
    world.looking = asyncio.Event()
    lease = world.lease()
    while not world.looks:
        await asyncio.sleep(0)
    await world.waiting.takers.ready([ITEM])
    assert world.waiting.takers.reserve([ITEM]) is None
    world.looking.set()
    assert lease.cancel()


async def test_a_wait_that_ends_meanwhile_gets_what_comes() -> None:
    world = World()
    lease = world.lease(wait=0.01)
    taker = await world.reserved()
    await asyncio.sleep(0.02)
    assert not lease.done()
    world.waiting.bring(taker, FOUND)
    assert await lease is FOUND


async def test_what_comes_for_nobody_is_given_back() -> None:
    world = World()
    lease = world.lease()
    taker = await world.reserved()
    lease.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lease
    world.waiting.bring(taker, FOUND)
    await asyncio.sleep(0)
    await world.waiting.close()
    assert world.settled == ["a"]
