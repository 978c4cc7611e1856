"""A queue tailer against the real embedded queue and a scheduler that does as it is told."""

import asyncio
import time
from dataclasses import replace

import pytest
from pydantic import ValidationError

from tailrace.model.claim import State
from tailrace.model.dead_letter import LetterFilter
from tailrace.model.errors import StoreFull
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.pumps import queue_pump
from tailrace.tailers.resources import Resources
from tailrace.tailers.tailer import Tailer

SUCCESS = Ended(Outcome.SUCCESS)
QUEUE = {"kind": "queue"}


async def submit(stores, count, function="f", start=0):
    items = [NewItem(Kind(function, 2), b"%d" % n) for n in range(start, start + count)]
    return [one.id for one in await stores.queue.submit(items)]


async def states(stores, ids):
    return [status.state for status in await stores.queue.status(ids)]


async def test_everything_is_acknowledged(stores, scheduler, start, eventually):
    scheduler.allow("f")
    ids = await submit(stores, 2500)
    tailer = await start(source=QUEUE)
    await eventually(lambda: tailer.overview().settled == 2500)
    assert sorted(scheduler.ids) == sorted(ids)
    assert set(await states(stores, ids)) == {State.SUCCESS}
    assert tailer.overview().in_flight == 0


async def test_each_outcome_has_its_state(stores, scheduler, start, eventually):
    ends = {
        b"0": SUCCESS,
        b"1": Ended(Outcome.RETRY, "flaky"),
        b"2": Ended(Outcome.FATAL, "broken"),
        b"3": Ended(Outcome.DROPPED, "gate"),
        b"4": Ended(Outcome.EXPIRED),
        b"5": Ended(Outcome.CANCELLED),
        b"6": Ended(Outcome.THROTTLED, after=100),
        b"7": Ended(Outcome.SUCCESS, result=b"7"),
        b"8": Ended(Outcome.HELD, "drained", after=100),
    }
    scheduler.decide = lambda flight, index: ends[flight.payloads[index]]
    scheduler.allow("f")
    ids = await submit(stores, 9)
    tailer = await start(source=QUEUE, results=True)
    await eventually(lambda: tailer.overview().settled == 9)
    assert await states(stores, ids) == [
        State.SUCCESS,
        State.RETRIABLE_FAILURE,
        State.FATAL_FAILURE,
        State.DROPPED,
        State.EXPIRED,
        State.CANCELLED,
        State.NEW,
        State.SUCCESS,
        State.NEW,
    ]
    statuses = await stores.queue.status(ids)
    assert [status.attempts for status in statuses] == [0, 1, 1, 0, 0, 0, 0, 0, 0]
    assert await stores.results.get(ids[7]) == b"7"
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert (letter.id, letter.reason) == (ids[2], "broken")
    assert [(each.outcome, each.reason) for each in letter.tries] == [("fatal", "broken")]
    assert {id: [each.outcome for each in tries] for id, tries in (await stores.queue.tries(ids)).items()} == {
        ids[1]: ["retry"],
        ids[6]: ["throttled"],
    }


async def test_retries_carry_their_attempt_until_they_are_dead(stores, scheduler, start, eventually):
    attempts = []

    def decide(flight, index):
        attempts.append(flight.attempts[index])
        return Ended(Outcome.RETRY, "flaky", after=0.0)

    scheduler.decide = decide
    scheduler.allow("f")
    ids = await submit(stores, 1)
    tailer = await start(source=QUEUE, retry={"max_attempts": 3})
    await eventually(lambda: tailer.overview().dead == 1)
    assert attempts == [1, 2, 3]
    assert await states(stores, ids) == [State.FATAL_FAILURE]
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert [each.reason for each in letter.tries] == ["flaky", "flaky", "flaky (attempt 3 of 3, the last)"]


async def test_a_crash_is_counted_and_its_item_runs_alone(stores, scheduler, start, eventually):
    seen = []

    def decide(flight, index):
        extra = flight.extras.get(index)
        seen.append((flight.attempts[index], extra.crashes if extra else 0, bool(extra and extra.alone)))
        return Ended(Outcome.LOST, "signal 9", crashed=True)

    scheduler.decide = decide
    scheduler.allow("f")
    await submit(stores, 1)
    tailer = await start(source=QUEUE)
    await eventually(lambda: tailer.overview().dead == 1)
    assert seen == [(1, 0, False), (1, 1, True), (1, 2, True)]


async def test_what_has_no_credit_stays_in_the_queue(stores, scheduler, start, eventually):
    scheduler.allow("f")
    await submit(stores, 100, "g")
    ids = await submit(stores, 10)
    tailer = await start(source=QUEUE)
    await eventually(lambda: tailer.overview().settled == 10)
    assert sorted(scheduler.ids) == sorted(ids)
    assert (await stores.queue.counts())["new"] == 100
    scheduler.allow("g")
    await eventually(lambda: tailer.overview().settled == 110)


async def test_credit_bounds_what_is_out(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f", 30)
    await submit(stores, 100)
    tailer = await start(source=QUEUE)
    await eventually(lambda: len(scheduler.ids) == 30)
    for flight in list(scheduler.flights):
        for index in range(len(flight)):
            scheduler.session.end(flight, index, SUCCESS)
    await eventually(lambda: len(scheduler.ids) == 60)
    await eventually(lambda: tailer.overview().settled == 30)
    assert tailer.overview().in_flight == 30


async def test_renewals_keep_a_long_run_and_pass_on_a_cancellation(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    ids = await submit(stores, 2)
    tailer = await start(source=QUEUE)
    await eventually(lambda: len(scheduler.ids) == 2)
    fence = scheduler.flights[0].fence
    assert await stores.queue.cancel(ids[:1]) == ["requested"]
    await eventually(lambda: bool(scheduler.cancelled))
    assert await states(stores, ids[1:]) == [State.PROCESSING]
    assert all(flight.fence == fence for flight in scheduler.flights)
    for index in range(2):
        scheduler.session.end(scheduler.flights[0], index, SUCCESS if index else Ended(Outcome.CANCELLED))
    await eventually(lambda: tailer.overview().settled == 2)


async def test_a_drain_takes_nothing_new_and_finishes(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f", 10)
    await submit(stores, 50)
    tailer = await start(source=QUEUE)
    await eventually(lambda: len(scheduler.ids) == 10)
    flight = scheduler.flights[0]

    def finish(drained):
        for index in range(len(flight)):
            drained.end(flight, index, SUCCESS)

    session = scheduler.session
    draining = asyncio.create_task(tailer.drain(10))
    await eventually(lambda: session.draining)
    finish(session)
    await draining
    assert (await stores.queue.counts())["new"] == 40


async def test_a_drain_ends_when_a_claim_under_way_finds_nothing(scheduler, start, eventually):
    # Given a claim that waits for the first item of an empty queue
    scheduler.allow("f", 10)
    tailer = await start(source=QUEUE, heartbeat=5.0)
    await eventually(lambda: tailer._pump._claims)
    # When the tailer is drained, then that is over with the claim, long before the time it was given
    async with asyncio.timeout(5):
        await tailer.drain(60)


async def test_a_full_disk_stops_claims_and_not_the_tailer(stores, scheduler, start, eventually, monkeypatch):
    # Given a store without room for the claims it is asked for
    refused = []
    lease = stores.queue.lease

    async def full(*arguments):
        refused.append(arguments)
        raise StoreFull("queue store: database or disk is full")

    monkeypatch.setattr(stores.queue, "lease", full)
    monkeypatch.setattr(queue_pump, "LEASE_WAIT", 0.01)
    scheduler.allow("f")
    ids = await submit(stores, 3)
    tailer = await start(source=QUEUE)
    await eventually(lambda: len(refused) > 2)
    # Then the tailer says so and goes on in the same session when there is room
    assert "disk is full" in tailer.overview().detail
    sessions = len(scheduler.sessions)
    monkeypatch.setattr(stores.queue, "lease", lease)
    await eventually(lambda: tailer.overview().settled == 3)
    assert set(await states(stores, ids)) == {State.SUCCESS}
    assert len(scheduler.sessions) == sessions


async def test_letters_that_cannot_be_written_hold_up_no_other(stores, scheduler, start, eventually, monkeypatch):
    # Given a store of dead letters that has no room
    add, room = stores.dead_letters.add, []

    async def full(letters):
        if not room:
            raise StoreFull("dead letters: database or disk is full")
        return await add(letters)

    monkeypatch.setattr(stores.dead_letters, "add", full)
    scheduler.decide = lambda flight, index: (
        Ended(Outcome.FATAL, "broken") if flight.payloads[index] == b"0" else SUCCESS
    )
    scheduler.allow("f")
    dying, *others = await submit(stores, 3)
    tailer = await start(source=QUEUE)
    # When one item dies among others, Then these are settled, and those that come later
    await eventually(lambda: tailer.overview().settled == 2)
    others += await submit(stores, 2, start=3)
    await eventually(lambda: tailer.overview().settled == 4)
    assert set(await states(stores, others)) == {State.SUCCESS}
    # And the tailer says what the one waits for, which is settled once its letter is there
    assert "dead letters: database or disk is full" in tailer.overview().detail
    assert {*await states(stores, [dying])} <= {State.ENQUEUED, State.PROCESSING}
    room.append("some")
    await eventually(lambda: tailer.overview().dead == 1)
    assert await states(stores, [dying]) == [State.FATAL_FAILURE]
    assert tailer.overview().settled == 5


@pytest.mark.parametrize("slow", [3600.0, -3600.0])
async def test_a_tailer_whose_clock_is_wrong_starts_nothing_early_or_an_hour_late(
    stores, environment, scheduler, parking, eventually, slow
):
    # Given a tailer on a host whose clock is an hour behind that of the store, or ahead of it
    class Wrong:
        monotonic = staticmethod(time.monotonic)
        wall = staticmethod(lambda: time.time() - slow)

    started = []

    def decide(flight, index):
        started.append(time.monotonic())
        return Ended(Outcome.RETRY, "flaky", after=0.5) if len(started) == 1 else SUCCESS

    scheduler.decide = decide
    scheduler.allow("f")
    await submit(stores, 1)
    config = TailerConfig.model_validate({"name": "t", "source": QUEUE})
    sizes = LeaseSizes.of_heartbeat(0.1)
    tailer = Tailer(config, Resources(replace(environment, clock=Wrong()), scheduler.address, parking, sizes))
    await tailer.start()
    # When an item of it is to be tried again
    await eventually(lambda: len(started) == 2)
    # Then it waits by the store's clock
    assert started[1] - started[0] >= 0.5
    await tailer.stop()


async def test_functions_that_flood_and_fail_for_ever_keep_no_other_waiting(stores, scheduler, start, eventually):
    # Given two functions at the highest priority, each with more items than it has credit for, that are retried at once
    scheduler.decide = lambda flight, index: (
        SUCCESS if flight.kinds[index].function == "well" else Ended(Outcome.RETRY, "it never works", after=0.0)
    )
    scheduler.total = 400
    for function, priority in (("stuck", 0), ("stuck_too", 0), ("well", 3)):
        scheduler.allow(function, 200, priority)
    stuck = [NewItem(Kind(function, 0), b"") for function in ("stuck", "stuck_too") for _ in range(1000)]
    await stores.queue.submit(stuck)
    tailer = await start(source=QUEUE, retry={"max_attempts": 10_000})
    await eventually(lambda: len(scheduler.flights) > 20)
    # When another one has work at the lowest priority
    before = len(scheduler.flights)
    await stores.queue.submit([NewItem(Kind("well", 3), b"") for _ in range(300)])
    well = lambda: [kind.function for flight in scheduler.flights for kind in flight.kinds].count("well")  # noqa: E731
    await eventually(lambda: well() == 300)
    # Then it gets at least the share of the lowest (5 %) of what is handed out, twice that is never needed
    last = max(index for index, flight in enumerate(scheduler.flights) if Kind("well", 3) in flight.kinds)
    assert sum(map(len, scheduler.flights[before : last + 1])) < 2 * 300 / 0.05
    assert tailer.overview().dead == 0


async def test_a_tailer_of_some_functions_takes_those_alone_however_full_another_one_is(
    stores, scheduler, start, eventually
):
    # Given a tailer whose window is full for good of what two functions flooded
    scheduler.decide = lambda flight, index: SUCCESS if flight.kinds[index].function == "charge" else None
    for function in ("flood", "flood_too", "charge"):
        scheduler.allow(function)
    await submit(stores, 100, "flood")
    await submit(stores, 100, "flood_too")
    rest = await start(source={"kind": "queue", "without": ["charge"]}, window={"items": 50})
    await eventually(lambda: rest.overview().in_flight == 50)
    # When another one has a function for itself, at the lowest priority, then that runs at once
    dedicated = await start(name="critical", source={"kind": "queue", "functions": ["charge"]})
    ids = await submit(stores, 300, "charge")
    await eventually(lambda: dedicated.overview().settled == 300)
    assert set(await states(stores, ids)) == {State.SUCCESS}
    # And neither took anything of the other, nor counts it
    assert (rest.overview().read, dedicated.overview().read) == (50, 300)
    await eventually(lambda: (rest.overview().lag, dedicated.overview().lag) == (150, 0))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"functions": ["a"], "without": ["b"]}, "both given"),
        ({"functions": ["not a name"]}, "pattern"),
        ({"function": ["a"]}, "Extra inputs"),
    ],
)
def test_a_queue_source_says_what_is_wrong_with_it(source, why):
    with pytest.raises(ValidationError, match=why):
        TailerConfig.model_validate({"name": "t", "source": {"kind": "queue", **source}})
