"""Connections that break, workers and tailers that leave, a scheduler that drains: items that go on, and items that
come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from scenes.scheduler_place import SEND, SIZES, Place

from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.wire.link import Link
from tailrace.wire.v1 import scheduler_pb2 as pb


async def test_a_broken_connection_that_heals_restarts_nothing(place: Place) -> None:
    worker = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    refs = tailer.push(SEND, SEND)
    await worker.until(lambda: len(worker.open) == 2)
    worker.streams.cut()
    tailer.streams.cut()
    await worker.until(lambda: worker.resumes == [False, True])
    for each in list(worker.open):
        worker.end(each)
    assert await tailer.ended(refs) == [None, None]
    assert len(worker.flights) == 1 and tailer.losses == worker.losses == 0


async def test_what_waits_for_other_work_makes_room_through_broken_connections(place: Place) -> None:
    # Given a worker of one place, one item in it and three behind it
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    refs = tailer.push(*[SEND] * 4)
    await worker.until(lambda: len(worker.open) == 1)
    (first,) = worker.open
    # When the first waits for other work, and the connection breaks, then the next one comes, and only that
    worker.wait(first)
    worker.streams.cut()
    await worker.until(lambda: len(worker.open) == 2 and worker.resumes == [False, True])
    (second,) = worker.open.keys() - {first}
    state = await place.client.inspect()
    assert [(lane.waiting, lane.running, lane.reason) for lane in state.lanes] == [(2, 2, "workers_full")]
    assert "waits for other work" in (await place.client.explain(worker.open[first])).detail
    # When it goes on, and the second ends, then there is no room: the place is the first one's again
    worker.wait(first, False)
    worker.end(second)
    assert await tailer.ended(refs[1:2]) == [None]
    assert len(worker.open) == 1
    # When it ends too, or while it waits, then there is room for one
    worker.end(first)
    await worker.until(lambda: len(worker.open) == 1 and first not in worker.open)
    (third,) = worker.open
    worker.wait(third)
    await worker.until(lambda: len(worker.open) == 2)
    for each in list(worker.open):
        worker.end(each)
    assert await tailer.ended(refs) == [None] * 4
    pools = next(iter(place.server.core.workers.values())).pools.values()
    assert [(pool.assigned, pool.parents) for pool in pools] == [(0, 0)]


async def test_a_worker_that_stays_away_is_answered_lost_after_its_lease(place: Place) -> None:
    worker = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    refs = tailer.push(SEND)
    await worker.until(lambda: worker.open)
    await worker.dialer.close()
    (ended,) = await tailer.ended(refs)
    assert ended is not None and ended.outcome == Outcome.LOST and ended.reason.startswith("worker_lost")


async def test_what_a_lost_worker_ran_waits_for_no_later_tick(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a worker that runs something, and when each tick of the scheduler was due
    worker = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    refs = tailer.push(SEND)
    await worker.until(lambda: worker.open)
    (session,) = place.server.core.workers.values()
    ticks: list[tuple[float, float]] = []  # when it was due, and when it came
    tick = place.server.core.tick

    def noting(now: float, wall: float) -> None:
        ticks.append((place.server._tick_at, now))
        tick(now, wall)

    monkeypatch.setattr(place.server.core, "tick", noting)
    # When it goes for good
    await worker.dialer.close()
    await tailer.ended(refs)
    # Then the first one after the worker was lost was due by that moment: just then, or before, if it came late
    assert not session.connected
    lost = session.lost_at(SIZES)
    assert next(due for due, came in ticks if came >= lost) <= lost


async def test_a_timer_that_comes_a_moment_early_is_not_the_last_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a scheduler where nothing happens, on a loop that calls two milliseconds too early
    ticks: asyncio.Queue[float] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    class Early:
        def __getattr__(self, name: str) -> Any:
            return getattr(loop, name)

        def call_later(self, delay: float, call: Callable[[], None]) -> asyncio.TimerHandle:
            return loop.call_later(max(0.0, delay - 0.002), call)

    monkeypatch.setattr(place.server, "_loop", Early())
    monkeypatch.setattr(place.server.core, "tick", lambda now, wall: ticks.put_nowait(now))
    # Then it ticks all the same, again and again
    for _ in range(4):
        await ticks.get()


async def test_waiting_items_come_back_when_the_last_worker_has_gone(place: Place) -> None:
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    _, waiting = tailer.push(SEND, SEND)
    await worker.until(lambda: worker.open)
    await worker.dialer.close()
    assert await tailer.ended([waiting]) == [Ended(Outcome.HELD, "no_worker")]
    await tailer.until(lambda: tailer.cells["send", 1] == 0)


async def test_a_draining_worker_gets_nothing_more(place: Place) -> None:
    old = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    first = tailer.push(SEND)
    await old.until(lambda: old.open)
    old.draining = True
    old.ask()
    await old.until(lambda: len(old.grants) == 2)  # so what it said in the same frame is known
    new = await place.worker("send")
    assert await tailer.ended(tailer.push(SEND, SEND)) == [None, None]
    assert len(new.flights) == 1 and len(old.flights) == 1
    old.end(next(iter(old.open)))
    assert await tailer.ended(first) == [None]


async def test_a_draining_tailer_gets_back_what_has_not_started(place: Place) -> None:
    # Given two tailers, of each an item that waits for the only slot
    worker = await place.worker("send", limit=1, hold=True)
    tailer, other = await place.tailer("send", name="orders"), await place.tailer("send", name="others")
    running, waiting = tailer.push(SEND, SEND)
    await worker.until(lambda: worker.open)
    theirs = other.push(SEND)
    # When one of them drains
    tailer.draining = True
    tailer.dialer.notify()
    # Then it waits for what runs alone, and the other one's turn comes
    assert await tailer.ended([waiting]) == [Ended(Outcome.HELD, "draining")]
    assert running not in tailer.ends
    worker.end(next(iter(worker.open)))
    assert await tailer.ended([running]) == [None]
    await worker.until(lambda: worker.open)
    worker.end(next(iter(worker.open)))
    assert await other.ended(theirs) == [None]


async def test_draining_hands_back_what_waits_and_waits_for_what_runs(place: Place) -> None:
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    running, waiting = tailer.push(SEND, SEND)
    await worker.until(lambda: worker.open)
    draining = asyncio.create_task(place.server.drain(20.0))
    assert await tailer.ended([waiting]) == [Ended(Outcome.HELD, "draining")]
    assert not draining.done()
    worker.end(next(iter(worker.open)))
    assert await tailer.ended([running]) == [None]
    async with asyncio.timeout(10):
        await draining


async def test_draining_waits_for_outcomes_only(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given sessions that were told of credit and leases, and never acknowledge what they are told
    monkeypatch.setattr(Link, "acknowledged", lambda link, number: None)
    await place.worker("send")
    await place.tailer("send")
    # Then draining ends at once, since nothing ran and no outcome is on its way
    async with asyncio.timeout(10):
        await place.server.drain(60.0)


async def test_a_frame_that_cannot_be_right_ends_the_session(place: Place) -> None:
    tailer = await place.tailer()
    bad = pb.Push(flight=1, fence=1)
    bad.items.id.append("a")
    tailer.pending.append(bad)
    tailer.dialer.notify()
    await tailer.until(lambda: tailer.losses == 1)
