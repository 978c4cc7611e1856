"""Many pollers of one queue cost it no more than one; items that all see they follow in turn; a slow store is spared.

In virtual time: a loop that never waits, but jumps to its next timer.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Coroutine
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.claim import Leased
from tailrace.model.demand import Cell, Closed, Demand
from tailrace.model.errors import NotConnected
from tailrace.model.workload import Kind
from tailrace.stores.queue.pace import GAP, LONGEST, MOST, EmptyLooks, PollPace
from tailrace.stores.queue.poller import COUNT, SEEN, TELL, Poller

MAIL, SMS = Cell("mail", 2), Cell("sms", 2)
ANY = Demand({MAIL: 10}, frozenset(), 10)
FOUND = Leased(1, 30.0, [Kind("mail", 2)], ["1"], [b""], [1], {})
FAR = 1e9


class Jumping(asyncio.SelectorEventLoop):
    """A clock whose time passes only while it would wait."""

    class _Selector(selectors.DefaultSelector):
        now = 0.0

        def select(self, timeout: float | None = None) -> Any:
            self.now += timeout or 0.0
            return super().select(0)

    def __init__(self) -> None:
        self._clock = self._Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=Jumping) as runner:
        runner.run(work)


@dataclass
class Store:
    """A queue of one item at a time, and the roll of who polls it. `took`: seconds that it takes to answer."""

    took: float = 0.001
    due: float = FAR
    known: bool = False  # whether a look says when the item will be due
    looks: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    told: dict[str, float] = field(default_factory=dict)
    away: bool = False

    async def count(self, me: str, *, here: bool) -> int:
        now = asyncio.get_running_loop().time()
        if self.away:
            raise NotConnected("the store is away")
        if here:
            self.told[me] = now
        return sum(now - at <= SEEN for at in self.told.values())

    async def leave(self, me: str) -> None:
        self.told.pop(me, None)

    async def look(self) -> Leased | float:
        loop = asyncio.get_running_loop()
        self.looks.append(loop.time())
        await asyncio.sleep(self.took)
        if self.away:
            raise NotConnected("the store is away")
        if self.due <= loop.time():
            self.starts.append(loop.time() - self.due)
            self.due = FAR
            return FOUND
        return self.due - loop.time() if self.known else FAR

    def looked_between(self, begin: float, end: float) -> int:
        return sum(begin <= at < end for at in self.looks)


async def polls(store: Store, poller: Poller) -> None:
    """Leases again and again, as the pump of a queue does, and waits a second for each."""
    while True:
        try:
            await poller.find(ANY, 1.0, store.look)
        except NotConnected:
            await asyncio.sleep(0.5 + random.random())


async def started(store: Store, count: int, interval: float) -> tuple[list[Poller], list[asyncio.Task[None]]]:
    pollers = [Poller(interval, store, randomly=random.Random(number).random) for number in range(count)]
    tasks = [asyncio.create_task(polls(store, poller)) for poller in pollers]
    await asyncio.sleep(2 * COUNT)
    return pollers, tasks


async def ended(tasks: list[asyncio.Task[None]], pollers: list[Poller]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for poller in pollers:
        await poller.close()


@pytest.mark.parametrize("count", [1, 10, 100])
def test_all_pollers_together_look_once_in_an_interval(count: int) -> None:
    async def when() -> None:
        store = Store()
        pollers, tasks = await started(store, count, interval=0.5)
        begin = asyncio.get_running_loop().time() + 50
        await asyncio.sleep(50 + 100)
        assert 180 <= store.looked_between(begin, begin + 100) <= 220  # 200 at one in half a second
        await ended(tasks, pollers)
        assert store.told == {}

    run(when())


def test_a_dead_poller_leaves_the_count_and_the_others_look_more_often() -> None:
    async def when() -> None:
        # Given ten pollers
        store = Store()
        pollers, tasks = await started(store, 10, interval=0.5)
        assert {poller.own_interval for poller in pollers} == {5.0}
        # When five die without a word
        for task, poller in zip(tasks[:5], pollers[:5], strict=True):
            task.cancel()
            assert poller._counting is not None
            poller._counting.cancel()
        # Then the five that are left are the only ones counted, and look twice as often
        await asyncio.sleep(SEEN + TELL + 2 * COUNT)
        assert {poller.own_interval for poller in pollers[5:]} == {2.5}
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(100)
        assert 180 <= store.looked_between(begin, begin + 100) <= 220
        await ended(tasks, pollers[5:])

    run(when())


def test_half_the_interval_is_half_the_median_start_delay() -> None:
    async def delay(interval: float) -> float:
        store, moments = Store(), random.Random(7)
        pollers, tasks = await started(store, 4, interval)
        for _ in range(200):
            await asyncio.sleep(10 * moments.random())
            store.due = asyncio.get_running_loop().time()
            while store.due < FAR:
                await asyncio.sleep(interval)
        await ended(tasks, pollers)
        return median(store.starts)

    async def when() -> None:
        ratio = await delay(0.5) / await delay(1.0)
        assert 0.4 < ratio < 0.6

    run(when())


def test_a_time_that_all_know_of_is_followed_one_after_the_other() -> None:
    async def when() -> None:
        # Given a hundred pollers who all know when the next item is due
        store = Store(known=True)
        store.due = 120.0
        pollers, tasks = await started(store, 100, interval=1.0)
        # When it is
        await asyncio.sleep(115)
        # Then somebody takes it at once, and they do not all look in that moment
        assert store.starts[0] < 10 * GAP
        assert store.looked_between(120.0, 120.0 + 10 * GAP) < 30
        await ended(tasks, pollers)

    run(when())


def test_a_hint_wakes_all_but_not_in_one_moment() -> None:
    async def when() -> None:
        store = Store()
        pollers, tasks = await started(store, 100, interval=1.0)
        now = asyncio.get_running_loop().time()
        store.due = now
        for poller in pollers:
            poller.hinted()
        await asyncio.sleep(2.0)
        assert store.starts[0] < 10 * GAP
        assert store.looked_between(now, now + 10 * GAP) < 30
        assert 90 <= store.looked_between(now, now + 100 * GAP) <= 110
        await ended(tasks, pollers)

    run(when())


def test_one_alone_looks_at_once_when_hinted_or_woken() -> None:
    async def when() -> None:
        store = Store()
        [poller], tasks = await started(store, 1, interval=1000.0)
        for event in (poller.hinted, poller.wake):
            store.due = asyncio.get_running_loop().time()
            event()
            await asyncio.sleep(1.0)
        assert store.starts == pytest.approx([store.took] * 2)
        await ended(tasks, [poller])

    run(when())


def test_a_store_that_was_away_is_not_stormed() -> None:
    async def when() -> None:
        store = Store()
        pollers, tasks = await started(store, 100, interval=1.0)
        store.away = True
        await asyncio.sleep(20)
        store.away = False
        back = asyncio.get_running_loop().time()
        await asyncio.sleep(10)
        worst = max(store.looked_between(back + tenth / 10, back + tenth / 10 + 0.1) for tenth in range(100))
        assert worst < 30
        await ended(tasks, pollers)

    run(when())


def test_a_slow_store_is_asked_less_often_until_it_has_recovered() -> None:
    async def when() -> None:
        loop, store = asyncio.get_running_loop(), Store()
        poller = Poller(1.0, None, randomly=random.Random(1).random)

        async def claims(seconds: float) -> int:
            before, end = len(store.looks), loop.time() + seconds
            while loop.time() < end:
                store.due = loop.time()
                await poller.find(ANY, 60.0, store.look)
            return len(store.looks) - before

        quick = await claims(2) / 2
        store.took = 0.5
        slow = await claims(20) / 20
        store.took = 0.001
        await claims(5)
        again = await claims(2) / 2
        # 2 a second are what it could answer one after the other
        assert slow < 0.6
        assert again > 0.95 * quick

    run(when())


@given(st.lists(st.tuples(st.floats(0, 60), st.integers(0, 1024)), max_size=50), st.integers(1, 1000))
def test_a_pause_is_bounded(answers: list[tuple[float, int]], pollers: int) -> None:
    pace = PollPace(1.0, random.Random(1).random)
    pace.pollers = pollers
    for took, items in answers:
        assert 0.0 <= pace.answered(took, items) <= min(MOST, LONGEST * max(took, 0.2) * (1 + 1e-9))
    assert 0.9 * pollers <= pace.poll() <= 1.1 * pollers
    assert 0.0 <= pace.after_event() <= GAP * (pollers - 1)


def test_a_claim_that_waits_for_the_disk_is_slow_beside_other_claims_alone() -> None:
    pace = PollPace(1.0, random.Random(1).random)
    for _ in range(100):
        assert pace.answered(0.001) == 0
        assert pace.answered(0.05, 1) == 0
    assert pace.answered(0.5, 1) > 0
    assert pace.answered(0.05) > 0


def test_a_look_is_not_repeated_for_what_it_saw_nothing_in_and_is_made_for_anything_else() -> None:
    looks, closed = EmptyLooks(), frozenset({Closed("mail", reason="paused")})
    looks.nothing(ANY, 10.0)
    assert looks.next(ANY) == 10.0
    assert looks.next(Demand({MAIL: 1, SMS: 1}, frozenset(), 2)) < 0
    assert looks.next(Demand({MAIL: 1}, closed, 1)) < 0
    looks.nothing(Demand({SMS: 1}, frozenset(), 1), 20.0)
    assert looks.next(Demand({MAIL: 1, SMS: 1}, frozenset(), 2)) == 10.0
    looks.event(5.0)
    assert looks.next(ANY) == 5.0
    looks.changed()
    assert looks.next(ANY) < 0


def test_a_look_answers_the_same_for_equal_cells_and_another_for_others() -> None:
    # Given a look that saw nothing, and an answer that is known
    looks = EmptyLooks()
    looks.nothing(Demand({MAIL: 1, SMS: 1}, frozenset(), 2), 10.0)
    looks.nothing(Demand({SMS: 1}, frozenset(), 1), 20.0)
    assert looks.next(Demand({MAIL: 1, SMS: 1}, frozenset(), 2)) == 10.0
    # When it is asked for as many other cells, for fewer, and for the same with other amounts
    push = Cell("push", 2)
    # Then each is told its own
    assert looks.next(Demand({MAIL: 1, push: 1}, frozenset(), 2)) < 0
    assert looks.next(Demand({SMS: 1}, frozenset(), 1)) == 20.0
    assert looks.next(Demand({SMS: 7}, frozenset(), 7)) == 20.0
    assert looks.next(Demand({SMS: 1, MAIL: 3}, frozenset(), 4)) == 10.0
    # And what was told is told no more once it was looked at again, or something came
    looks.nothing(Demand({SMS: 1, MAIL: 3}, frozenset(), 4), 30.0)
    assert looks.next(Demand({SMS: 1, MAIL: 3}, frozenset(), 4)) == 30.0
    looks.event(15.0)
    assert looks.next(Demand({SMS: 1, MAIL: 3}, frozenset(), 4)) == 15.0
    looks.changed()
    assert looks.next(Demand({SMS: 1, MAIL: 3}, frozenset(), 4)) < 0
