"""Items of a queue tailer that were lost or handed back, against the real embedded queue."""

import asyncio

from test_tailer_queue import QUEUE, SUCCESS, states, submit

from tailrace.model.claim import State
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.tailers.rules.settlement import FIRST_AGAIN


async def test_items_of_a_lost_session_return_when_its_lease_is_over(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    ids = await submit(stores, 10)
    tailer = await start(source=QUEUE)
    await eventually(lambda: len(scheduler.ids) == 10)
    first = {id_: flight.fence for flight in scheduler.flights for id_ in flight.ids}
    scheduler.flights.clear()
    scheduler.decide = lambda flight, index: SUCCESS
    await scheduler.restart()
    await eventually(lambda: set(scheduler.ids) == set(ids))
    assert all(flight.fence > first[id_] for flight in scheduler.flights for id_ in flight.ids)
    async with asyncio.timeout(10):
        while set(await states(stores, ids)) != {State.SUCCESS}:
            await asyncio.sleep(0.01)
    assert tailer.overview().in_flight == 0


async def test_what_was_lost_runs_before_what_waits(stores, scheduler, start, eventually):
    # Given credit for one item, one that is out, and a backlog
    scheduler.allow("f", limit=1)
    scheduler.decide = lambda flight, index: None
    ids = await submit(stores, 1)
    tailer = await start(source=QUEUE)
    await eventually(lambda: scheduler.ids == ids)
    ids += await submit(stores, 5, start=1)
    # When it is lost, and once more comes back without having run
    for end in (Ended(Outcome.LOST, "its worker died"), Ended(Outcome.HELD, "no worker")):
        count = len(scheduler.flights)
        scheduler.session.end(scheduler.flights[-1], 0, end)
        await eventually(lambda count=count: len(scheduler.flights) > count)
        # Then it is handed out again before all others, and says so
        assert scheduler.flights[-1].ids == ids[:1]
        assert scheduler.flights[-1].extras[0].again
    scheduler.decide = lambda flight, index: SUCCESS
    scheduler.session.end(scheduler.flights[-1], 0, SUCCESS)
    await eventually(lambda: tailer.overview().settled == 8)
    assert scheduler.ids == [ids[0]] * 3 + ids[1:]
    assert not any(flight.extras for flight in scheduler.flights[3:])


async def status_that(stores, item, fits):
    """Waits until an item's status fits, and returns it."""
    async with asyncio.timeout(20):
        while True:
            [status] = await stores.queue.status([item])
            if fits(status):
                return status
            await asyncio.sleep(0.01)


async def test_what_is_handed_back_time_and_again_waits_and_says_why(stores, scheduler, start, eventually):
    # Given a worker that hands an item back whenever it gets it
    scheduler.allow("f")
    scheduler.decide = lambda flight, index: Ended(Outcome.HELD, "its clock is wrong")
    [item] = await submit(stores, 1)
    tailer = await start(source=QUEUE)
    # Then the tailer and the item say that it waits, and why
    await eventually(lambda: "1 items are held: handed back unstarted time and again" in tailer.overview().detail)
    waits = await status_that(stores, item, lambda status: "times in a row" in status.reason)
    assert waits.reason.startswith("its clock is wrong (")
    # And it runs when the worker was mended, as if nothing had been
    scheduler.decide = lambda flight, index: SUCCESS
    ended = await status_that(stores, item, lambda status: status.state is State.SUCCESS)
    assert (ended.attempts, ended.crashes) == (0, 0)
    assert {flight.attempts[0] for flight in scheduler.flights} == {1}


async def test_what_is_lost_time_and_again_waits_like_all_others(stores, scheduler, start, eventually):
    # Given an item that is lost whenever it runs, and a backlog
    scheduler.allow("f", limit=1)
    lost = Ended(Outcome.LOST, "its worker's machine hangs")
    ids = await submit(stores, 6)
    scheduler.decide = lambda flight, index: lost if flight.ids[index] == ids[0] else SUCCESS
    tailer = await start(source=QUEUE)
    # Then it goes first only so many times
    await eventually(lambda: set(ids) == set(scheduler.ids))
    assert scheduler.ids[: FIRST_AGAIN + 2] == [ids[0]] * (FIRST_AGAIN + 1) + [ids[1]]
    scheduler.decide = lambda flight, index: SUCCESS
    await eventually(lambda: not tailer.overview().in_flight and scheduler.ids[-1] == ids[0])
