"""The rows of failed items, through crashes between any two writes: nothing is lost, no copy starts twice or early."""

import time
from dataclasses import replace

import pytest
from msgspec import structs

from tailrace.sdk.model.dead_letter import LetterFilter
from tailrace.sdk.model.lease import LeaseSizes
from tailrace.sdk.model.ledger import Entry, Place
from tailrace.sdk.model.outcome import Outcome
from tailrace.sdk.model.parked import Parked, parked_headers
from tailrace.sdk.model.workload import Ended, Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.log.log import Record
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.supervisor import Tailers

SUCCESS = Ended(Outcome.SUCCESS)
FAILED = Ended(Outcome.RETRY, "flaky", after=0.0)
FIRST = TailerConfig.model_validate(
    {"name": "first", "source": {"kind": "log", "stream": "s"}, "function": "f", "retry": {"max_attempts": 3}}
)


class WatchedLedger:
    """A ledger that notes which of its methods are asked."""

    def __init__(self, store):
        self.store = store
        self.asked = []

    def __getattr__(self, name):
        self.asked.append(name)
        return getattr(self.store, name)


@pytest.fixture
async def start_all(environment, scheduler, parking):
    """Starts all tailers of a node; each call is another process, the one before it having been stopped."""
    running = []

    async def start(environment=environment):
        while running:
            await running.pop().stop()
        tailers = Tailers([FIRST], environment, scheduler.address, parking, LeaseSizes.of_heartbeat(0.1))
        running.append(tailers)
        await tailers.start()
        return tailers

    yield start
    while running:
        await running.pop().stop()


def overview(tailers, name="first"):
    return next((one for one in tailers.overviews() if one.name == name), None)


async def rows(stores, source="first"):
    return [row.entry for row in await stores.ledger.list(source, 100)]


async def deliver(stores, *items):
    records = [Record(item.payload, headers=parked_headers(item)) for item in items]
    await stores.delay_log.append("due.f", 0, records)


async def settles(tailers, eventually, name, count):
    """So many items of a tailer are over."""
    await eventually(lambda: (o := overview(tailers, name)) and o.settled + o.parked + o.dead >= count)


async def no_rows(stores, eventually):
    """The ledger is empty once everything rests (I7)."""
    while await rows(stores):
        await eventually(lambda: True)


def copy(entry):
    """The copy that a row speaks of."""
    return Parked(
        "first", f"first/0/{entry.position}", Kind("f"), b"x", entry.due, entry.first_seen, entry.attempts + 1,
        fence=entry.fence, partition="0", position=entry.position, n=entry.n,
    )  # fmt: skip


async def given_row(stores, place):
    """An item at position 0 that failed under an owner that is gone, with its row in that place."""
    await stores.log.append("s", 0, [Record(b"x")])
    owner = await stores.ownership.take("first", "", "gone", 1.0, 0)
    await stores.ledger.open("first", "0", owner.epoch)
    parking = Entry(0, Place.PARKING, n=1, due=5.0, attempts=1, fence=7, first_seen=time.time())
    await stores.ledger.write("first", "0", [(None, parking)], owner.epoch)
    steps = {
        Place.PARKING: [],
        Place.PARKED: [parking._replace(place=Place.PARKED)],
        Place.RUNNING: [parking._replace(place=Place.RUNNING, fence=9, epoch=1)],
    }[place]
    before = parking
    for after in steps:
        await stores.ledger.write("first", "0", [(before, after)], None)
        before = after
    await stores.ownership.release("first", "", owner.epoch)
    return before


async def test_a_failed_item_has_a_row_until_its_copy_is_over_and_the_checkpoint_has_passed(
    stores, scheduler, parking, start_all, eventually
):
    scheduler.decide = lambda flight, index: FAILED if flight.attempts[index] == 1 else SUCCESS
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(3)])
    tailers = await start_all()
    await eventually(lambda: overview(tailers).parked == 3)
    assert {(row.place, row.n, row.attempts) for row in await rows(stores)} == {(Place.PARKING, 1, 1)}  # due soon
    assert {(item.partition, item.n) for item in parking.items} == {("0", 1)}
    assert sorted(item.position for item in parking.items) == [0, 1, 2]
    await deliver(stores, *parking.items)
    await settles(tailers, eventually, "due", 3)
    await no_rows(stores, eventually)
    fences = [flight.fence for flight in scheduler.flights]
    assert fences == sorted(fences)


async def test_healthy_items_never_touch_the_ledger(stores, scheduler, environment, start_all, eventually):
    ledger = WatchedLedger(stores.ledger)
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(2000)])
    tailers = await start_all(replace(environment, ledger=ledger))
    await settles(tailers, eventually, "first", 2000)
    await tailers.drain(5)
    assert set(ledger.asked) == {"open"}


async def test_a_row_that_says_parking_is_appended_by_the_next_owner_and_never_run_from_the_source(
    stores, scheduler, parking, start_all, eventually
):
    """Given an owner that died between the row and the append."""
    row = await given_row(stores, Place.PARKING)
    scheduler.allow("f")
    tailers = await start_all()
    await settles(tailers, eventually, "first", 1)
    [item] = parking.items
    assert (item.position, item.n, item.due, item.attempt, item.first_seen) == (0, 1, row.due, 2, row.first_seen)
    assert not scheduler.flights
    assert [one.place for one in await rows(stores)] == [Place.PARKING]  # as it was: it is due


async def test_an_owner_that_dies_before_the_row_says_parked_makes_copies_of_which_one_starts(
    stores, scheduler, parking, start_all, eventually
):
    """Given an owner that died between the append and the row: the next one appends again."""
    row = await given_row(stores, Place.PARKING)
    scheduler.allow("f")
    tailers = await start_all()
    await settles(tailers, eventually, "first", 1)
    await deliver(stores, copy(row))
    await deliver(stores, *parking.items)
    await settles(tailers, eventually, "due", 2)
    assert scheduler.ids == ["first/0/0"]
    await no_rows(stores, eventually)


@pytest.mark.parametrize("place", [Place.PARKED, Place.RUNNING])
async def test_what_is_elsewhere_is_never_run_from_the_source(stores, scheduler, parking, start_all, eventually, place):
    await given_row(stores, place)
    await stores.log.append("s", 0, [Record(b"healthy")])
    scheduler.allow("f")
    tailers = await start_all()
    await eventually(lambda: overview(tailers).lag == 0)
    assert scheduler.ids == ["first/0/1"] and not parking.items


async def test_copies_of_one_item_start_once(stores, scheduler, start_all, eventually):
    row = await given_row(stores, Place.PARKED)
    scheduler.allow("f")
    tailers = await start_all()
    await deliver(stores, copy(row), copy(row))
    await deliver(stores, copy(row))
    await settles(tailers, eventually, "due", 3)
    assert scheduler.ids == ["first/0/0"] and scheduler.flights[0].fence > row.fence
    await no_rows(stores, eventually)


async def test_a_copy_that_comes_while_another_runs_is_over(stores, scheduler, start_all, eventually):
    row = await given_row(stores, Place.PARKED)
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    tailers = await start_all()
    await deliver(stores, copy(row))
    await eventually(lambda: len(scheduler.ids) == 1)
    await deliver(stores, copy(row))
    await eventually(lambda: overview(tailers, "due").read == 2)
    flight = scheduler.flights[0]
    for session in scheduler.sessions.values():
        session.end(flight, 0, SUCCESS)
    await no_rows(stores, eventually)
    assert len(scheduler.ids) == 1


async def test_a_copy_of_before_never_starts_what_waits_for_later(stores, scheduler, parking, start_all, eventually):
    """Given an item that failed as a copy and was parked again, a repeat of the first copy is over: it would start
    early."""
    row = await given_row(stores, Place.PARKED)
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "flaky", after=60.0)
    scheduler.allow("f")
    tailers = await start_all()
    await deliver(stores, copy(row))
    await eventually(lambda: overview(tailers, "due") is not None and overview(tailers, "due").parked == 1)
    [again] = await rows(stores)
    assert (again.place, again.n, again.attempts, parking.items[0].n) == (Place.PARKED, 2, 2, 2)
    await deliver(stores, copy(row), copy(row))
    await settles(tailers, eventually, "due", 3)
    assert len(scheduler.ids) == 1
    assert await rows(stores) == [again]


async def test_a_copy_that_finds_a_later_parking_appends_that_one(stores, scheduler, parking, start_all, eventually):
    """Given a due tailer that died between the row and the append of a second parking (L18)."""
    row = await given_row(stores, Place.RUNNING)
    later = row._replace(place=Place.PARKING, n=2, attempts=2, due=77.0)
    await stores.ledger.write("first", "0", [(row, later)], None)
    await deliver(stores, copy(row))
    scheduler.allow("f")
    tailers = await start_all()
    await settles(tailers, eventually, "due", 1)
    assert {(item.n, item.due, item.attempt) for item in parking.items} == {(2, 77.0, 3)}
    assert not scheduler.flights


async def test_a_copy_that_a_dead_tailer_ran_is_run_again_alone(stores, scheduler, start_all, eventually):
    row = await given_row(stores, Place.RUNNING)
    await deliver(stores, copy(row))
    scheduler.allow("f")
    await start_all()
    await eventually(lambda: len(scheduler.ids) == 1)
    [flight] = scheduler.flights
    assert flight.extras[0].alone and flight.fence > row.fence and flight.attempts == [2]
    await no_rows(stores, eventually)


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


async def test_rows_go_although_an_owner_died_between_its_checkpoint_and_the_sweep(
    stores, scheduler, start_all, eventually
):
    row = await given_row(stores, Place.PARKED)
    owner = await stores.ownership.read("first", "")
    await stores.checkpoints.open("first", owner.epoch)
    await stores.checkpoints.commit("first", owner.epoch, {"0": Mark(1)})
    scheduler.allow("f")
    await start_all()
    await deliver(stores, copy(row))
    await eventually(lambda: scheduler.ids == ["first/0/0"])
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
    assert (row.entry.place, row.entry.throttles, row.entry.attempts) == (Place.SUSPECT, 1, 0)
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
    assert (row.place, row.n, row.throttles, row.attempts) == (Place.PARKED, 1, 1, 1)
    # When its tailer is another one, then it waits for its time, and is parked no second time
    await start_all()
    await eventually(lambda: len(started) == 3)
    (_, _), (throttled, fence), (at, higher) = started
    assert at - throttled >= 0.8 and higher > fence and len(parking.items) == 1
