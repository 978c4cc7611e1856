"""Runs that wait for other work, in a real engine: the runs that go on meanwhile, and their number."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tailrace.foundation.current_run import RUN, waiting
from tailrace.model.outcome import Outcome
from tailrace.runtime.board import Board
from tailrace.runtime.deadman import Deadman
from tailrace.runtime.engine import Engine
from tailrace.runtime.frames import Assign, Done, StopItems, Waits
from tailrace.runtime.rules.attempt import Stop
from tailrace.sdk.function import Function, function

SLOTS, THREADS, WAITING = 2, 2, 3


class Place:
    """An engine of two slots and two threads in which three may wait, and a record of its functions' actions."""

    def __init__(self) -> None:
        self.running: set[str] = set()  # and not waiting
        self.most = 0
        self.waits: set[int] = set()
        self.ends: dict[int, Outcome] = {}
        self.reasons: dict[int, str] = {}
        self.go: dict[str, threading.Event] = {}
        self.news = asyncio.Event()
        self.left: list[asyncio.Task[Any]] = []
        self.loop = asyncio.get_running_loop()
        self.board = Board.create(SLOTS + THREADS + 2 * WAITING)
        self.contexts: list[contextvars.Context] = []
        methods = (
            *(self.parent, self.parent_plain, self.child, self.child_plain),
            *(self.leaves_one_waiting, self.leaves_its_context),
        )
        declared = [_declared(method) for method in methods]
        self.engine = Engine(
            {one.name: one for one in declared},
            slots=SLOTS,
            threads=THREADS,
            result_bytes=1 << 20,
            timeout_grace=5.0,
            board=self.board,
            deadman=Deadman(lambda delay: None),
            send=self.sent,
            parents=WAITING,
        )
        self.number = 0

    def sent(self, frame: Any) -> None:
        if isinstance(frame, Done):
            self.ends.update(dict.fromkeys(frame.succeeded, Outcome.SUCCESS))
            self.ends.update({row[0]: Outcome(row[1]) for row in frame.ended})
            self.reasons.update({row[0]: row[2] for row in frame.ended})
            self.waits -= self.ends.keys()
        if isinstance(frame, Waits):
            self.waits |= set(frame.waits) - self.ends.keys()
            self.waits -= set(frame.goes_on)
        self.news.set()

    def run(self, name: str, *who: str) -> list[int]:
        """Assigns a run for each of these."""
        self.number += 1
        first, count = self.number * 1024, len(who)
        payloads = [f'{{"who": "{each}"}}'.encode() for each in who]
        columns = ([0] * count, [""] * count, payloads, [1] * count, [1] * count)
        deadline = self.loop.time() + 1000
        kinds = [(0, name, 2, "", "")]
        self.engine.assign(Assign(self.number, deadline, first, kinds, *columns, {}, False, True))
        return list(range(first, first + count))

    async def until(self, true: Any) -> None:
        async with asyncio.timeout(20):
            while not true():
                self.news.clear()
                await self.news.wait()

    def began(self, who: str) -> None:
        self.running.add(who)
        self.most = max(self.most, len(self.running))
        self.loop.call_soon_threadsafe(self.news.set)

    def release(self, *who: str) -> None:
        for each in who:
            self.go.setdefault(each, threading.Event()).set()

    # the functions

    async def parent(self, who: str) -> None:
        self.began(who)
        go = self.go.setdefault(who, threading.Event())
        with waiting(blocking=False):
            async with asyncio.TaskGroup() as several:  # which count once
                for _ in range(3):
                    several.create_task(self.wait(who, go))
        self.began(who)
        await asyncio.sleep(0)
        self.running.discard(who)

    async def wait(self, who: str, go: threading.Event) -> None:
        with waiting(blocking=False):
            self.running.discard(who)
            while not go.is_set():
                await asyncio.sleep(0.005)

    def parent_plain(self, who: str) -> None:
        self.began(who)
        with waiting(blocking=True):
            self.running.discard(who)
            self.go.setdefault(who, threading.Event()).wait(20)
        self.began(who)
        self.running.discard(who)

    async def child(self, who: str) -> None:
        self.began(who)
        go = self.go.setdefault(who, threading.Event())
        while not go.is_set():
            await asyncio.sleep(0.005)
        self.running.discard(who)

    def child_plain(self, who: str) -> None:
        self.began(who)
        self.go.setdefault(who, threading.Event()).wait(20)
        self.running.discard(who)

    async def leaves_one_waiting(self, who: str) -> None:
        async def later() -> None:
            go = self.go.setdefault(who, threading.Event())
            while not go.is_set():
                await asyncio.sleep(0.005)
            with waiting(blocking=False) as wait:
                assert wait is None

        self.left.append(asyncio.create_task(later()))

    def leaves_its_context(self, who: str) -> None:
        self.contexts.append(contextvars.copy_context())


def _declared(method: Callable[[str], Any]) -> Function[..., Any]:
    """A method as a function of a platform."""

    async def on_loop(who: str) -> None:
        await method(who)

    def in_thread(who: str) -> None:
        method(who)

    target: Any = on_loop if inspect.iscoroutinefunction(method) else in_thread
    target.__name__ = method.__name__
    return function(target)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    made = Place()
    yield made
    made.release(*made.go)
    # An engine ends with its process; here its runners end.
    made.loop.set_exception_handler(lambda loop, context: None)
    tasks = [runner.task for runner in made.engine._runners if runner.task is not None]
    made.engine._runners.clear()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("sort", ["", "_plain"])
async def test_a_place_that_is_given_up_is_another_s_and_nobody_waits_to_go_on(place: Place, sort: str) -> None:
    # Given as many that wait as may, each on the place of the one before
    parents = place.run(f"parent{sort}", "p1", "p2", "p3")
    await place.until(lambda: place.waits == set(parents))
    # Then two more run, and no third; what only waits is marked on the board
    children = place.run(f"child{sort}", "c1", "c2", "c3")
    await place.until(lambda: place.running == {"c1", "c2"})
    assert place.board.waiting() == set(parents)
    assert place.board.running() == set(children[:2])
    # When those that waited go on, then at once, beyond the slots
    place.release("p1", "p2", "p3")
    await place.until(lambda: place.ends.keys() >= set(parents))
    assert place.running == {"c1", "c2"}
    # And afterwards as many run as there are slots
    place.most = 0
    more = place.run(f"child{sort}", "c4", "c5", "c6")
    place.release("c1", "c2", "c3", "c4", "c5", "c6")
    await place.until(lambda: place.ends.keys() >= {*children, *more})
    assert place.most == 2
    assert set(place.ends.values()) == {Outcome.SUCCESS}
    assert not place.board.waiting()


@pytest.mark.parametrize("sort", ["", "_plain"])
async def test_more_than_may_wait_are_refused_with_what_to_do(place: Place, sort: str) -> None:
    parents = place.run(f"parent{sort}", "p1", "p2", "p3")
    await place.until(lambda: place.waits == set(parents))
    # When one more comes, which could be what they wait for, then it runs, is told so, and spends no attempt
    (fourth,) = place.run(f"parent{sort}", "p4")
    await place.until(lambda: fourth in place.ends)
    assert place.ends[fourth] == Outcome.THROTTLED
    assert "raise `waiting` in the worker's configuration" in place.reasons[fourth]
    # And beside one that runs, no other begins
    flood = place.run(f"parent{sort}", *[f"f{number}" for number in range(20)])
    await place.until(lambda: place.ends.keys() >= set(flood))
    assert {place.ends[key] for key in flood} <= {Outcome.THROTTLED, Outcome.HELD}
    # When those that wait have ended, the next of them run
    place.release("p1", "p2", "p3", "p5")
    await place.until(lambda: place.ends.keys() >= set(parents))
    (fifth,) = place.run(f"parent{sort}", "p5")
    await place.until(lambda: fifth in place.ends)
    assert {place.ends[key] for key in (*parents, fifth)} == {Outcome.SUCCESS}


async def test_one_that_is_told_to_end_while_it_waits_leaves_nothing_behind(place: Place) -> None:
    parents = place.run("parent", "p1", "p2", "p3")
    await place.until(lambda: place.waits == set(parents))
    place.engine.stop_items(StopItems(parents, int(Stop.DRAIN)))
    await place.until(lambda: place.ends.keys() >= set(parents))
    assert {place.ends[key] for key in parents} == {Outcome.LOST}
    place.running.clear()
    place.most = 0
    children = place.run("child", "c1", "c2", "c3")
    place.release("c1", "c2", "c3")
    await place.until(lambda: place.ends.keys() >= set(children))
    assert place.most <= SLOTS


async def test_a_task_that_a_run_left_behind_waits_for_nobody(place: Place) -> None:
    # Given a run that ended, and another in its place
    (left,) = place.run("leaves_one_waiting", "l")
    await place.until(lambda: left in place.ends)
    place.run("child", "c1", "c2")
    await place.until(lambda: place.running == {"c1", "c2"})
    # When what the first left behind waits, then nobody's place is free
    place.release("l")
    await asyncio.gather(*place.left)
    assert not place.waits


async def test_outside_of_functions_nothing_is_counted() -> None:
    assert RUN.get() is None
    with waiting(blocking=True) as wait:
        assert wait is None


async def test_what_a_thread_s_run_left_to_another_loop_waits_for_nobody(place: Place) -> None:
    # Given runs that have ended, and work of theirs that goes on elsewhere, in their contexts
    for number in range(2 * WAITING):
        ended = place.run("leaves_its_context", f"l{number}")
        await place.until(lambda: place.ends.keys() >= set(ended))  # noqa: B023 - awaited at once
        # When that waits for other work, then it is no run's
        await asyncio.to_thread(place.contexts[-1].run, asyncio.run, _waits_for_nobody())
    # And none of the function is kept from running by them
    last = place.run("leaves_its_context", "last")
    await place.until(lambda: place.ends.keys() >= set(last))
    assert set(place.ends.values()) == {Outcome.SUCCESS}


async def _waits_for_nobody() -> None:
    with waiting(blocking=False) as wait:
        assert wait is None
