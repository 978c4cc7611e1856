"""The ledger's facts of an item survive its tailer: attempts, crashes, throttles, the time it waits for."""

import time

import pytest
from msgspec import structs
from scenes.ledger_rows import FAILED, SUCCESS, deliver, no_rows, overview, rows, settles

from tailrace.model.dead_letter import LetterFilter
from tailrace.model.ledger import LedgerPlace
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.log.log import Record


async def test_attempts_survive_restarts_and_end_as_a_dead_letter_without_a_row(
    stores, scheduler, parking, start_all, eventually
):
    scheduler.decide = lambda flight, index: FAILED
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"x")])
    for attempt in (1, 2):
        tailers = await start_all()
        await eventually(lambda attempt=attempt: len(parking.items) == attempt)
        await tailers.drain(5)
        # the record's own count is lost: the row knows
        await deliver(stores, structs.replace(parking.items[-1], attempt=1))
    tailers = await start_all()
    await eventually(lambda: (one := overview(tailers, "due")) is not None and one.dead == 1)
    assert [flight.attempts[0] for flight in scheduler.flights] == [1, 2, 3]
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert letter.attempts == 3
    assert [each.outcome for each in letter.tries] == 3 * ["retry"]
    assert [each.reason for each in letter.tries] == ["flaky", "flaky", "flaky (attempt 3 of 3, the last)"]
    assert [each.at for each in letter.tries] == sorted(each.at for each in letter.tries)
    await no_rows(stores, eventually)


async def test_what_was_out_when_a_tailer_died_runs_alone_and_bars_nothing(stores, scheduler, start_all, eventually):
    """Given items of which one is never answered, and an owner that dies with them; the next one runs what was not
    settled alone, what came later as always."""
    scheduler.decide = lambda flight, index: None if flight.payloads[index] in (b"1", b"3") else SUCCESS
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(5)])
    tailers = await start_all()
    await settles(tailers, eventually, "first", 3)
    while (await stores.checkpoints.load("first")).get("0", Mark(0)).handed_out < 5:
        await eventually(lambda: True)
    await tailers.stop()
    await stores.log.append("s", 0, [Record(b"5")])
    scheduler.flights.clear()
    scheduler.decide = lambda flight, index: SUCCESS
    tailers = await start_all()
    await settles(tailers, eventually, "first", 3)
    alone = {
        id_: bool((extra := flight.extras.get(index)) and extra.alone)
        for flight in scheduler.flights
        for index, id_ in enumerate(flight.ids)
    }
    assert alone == {"first/0/1": True, "first/0/3": True, "first/0/5": False}
    await no_rows(stores, eventually)


async def test_an_owner_that_left_nothing_running_casts_no_suspicion(stores, scheduler, start_all, eventually):
    scheduler.decide = lambda flight, index: Ended(Outcome.HELD)
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"x")])
    tailers = await start_all()
    await eventually(lambda: len(scheduler.ids) > 1)
    await tailers.drain(5)
    await tailers.stop()
    scheduler.flights.clear()
    scheduler.decide = lambda flight, index: SUCCESS
    tailers = await start_all()
    await settles(tailers, eventually, "first", 1)
    assert not scheduler.flights[0].extras and not await rows(stores)


async def test_crashes_survive_the_tailer(stores, scheduler, start_all, eventually):
    """Given an item whose process died once and whose tailer died then, a second crash is the second."""
    died = Ended(Outcome.LOST, "signal 11", crashed=True)
    scheduler.decide = lambda flight, index: None if flight.extras else died
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"x")])
    tailers = await start_all()
    await eventually(lambda: len(scheduler.ids) == 2)
    await tailers.stop()
    scheduler.flights.clear()
    scheduler.decide = lambda flight, index: died if flight.extras[0].crashes < 2 else SUCCESS
    tailers = await start_all()
    await settles(tailers, eventually, "first", 1)
    assert [flight.extras[0].crashes for flight in scheduler.flights] == [1, 2]
    await no_rows(stores, eventually)


@pytest.mark.parametrize("order", ["none", "key"])
async def test_a_throttled_item_keeps_its_time_and_its_count_through_a_restart(
    stores, environment, scheduler, parking, start, eventually, order
):
    # Given an item that was throttled, and its tailer gone
    ends = [Ended(Outcome.THROTTLED, "slower", after=0.8), None, SUCCESS]
    started = []

    def decide(flight, index):
        started.append((flight.ids[index], time.time(), flight.attempts[index]))
        return ends.pop(0)

    scheduler.decide = decide
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"payload", key="a")])
    keys = {"source": {"kind": "log", "stream": "s"}, "function": "f", "order": order, "key": {"record": True}}
    first = await start(**keys)
    await eventually(lambda: first.overview().held == 1)
    [row] = await stores.ledger.list("t", 10)
    assert (row.entry.place, row.entry.throttles, row.entry.attempts) == (LedgerPlace.SUSPECT, 1, 0)
    await first.stop()
    # When another one comes at once, then it waits for its time, and no attempt was spent
    second = await start(**keys)
    await eventually(lambda: second.overview().held == 1)
    await eventually(lambda: len(started) == 2)
    (id_, at, _), (again, later, attempt) = started
    assert (id_, again, attempt) == ("t/0/0", "t/0/0", 1)
    assert later - at >= 0.8


async def test_in_order_an_item_that_is_tried_again_keeps_its_time_through_a_restart(
    stores, scheduler, start, eventually
):
    started = []

    def decide(flight, index):
        started.append((time.time(), flight.attempts[index]))
        return Ended(Outcome.RETRY, "flaky", after=0.8) if len(started) == 1 else SUCCESS

    scheduler.decide = decide
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"payload", key="a")])
    keys = {"source": {"kind": "log", "stream": "s"}, "function": "f", "order": "key", "key": {"record": True}}
    first = await start(**keys)
    await eventually(lambda: first.overview().held == 1)
    await first.stop()
    await start(**keys)
    await eventually(lambda: len(started) == 2)
    assert started[1][0] - started[0][0] >= 0.8 and started[1][1] == 2


async def test_a_throttled_copy_keeps_its_time_through_a_restart(stores, scheduler, parking, start_all, eventually):
    # Given a copy that was throttled
    ends = [FAILED, Ended(Outcome.THROTTLED, "slower", after=0.8), SUCCESS]
    started = []

    def decide(flight, index):
        started.append((time.time(), flight.fence))
        return ends.pop(0)

    scheduler.decide = decide
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"payload")])
    tailers = await start_all()
    await eventually(lambda: len(parking.items) == 1)
    await deliver(stores, parking.items[0])
    await eventually(lambda: (due := overview(tailers, "due")) is not None and due.held == 1)
    [row] = await rows(stores)
    assert (row.place, row.n, row.throttles, row.attempts) == (LedgerPlace.PARKED, 1, 1, 1)
    # When its tailer is another one, then it waits for its time, and is parked no second time
    await start_all()
    await eventually(lambda: len(started) == 3)
    (_, _), (throttled, fence), (at, higher) = started
    assert at - throttled >= 0.8 and higher > fence and len(parking.items) == 1
