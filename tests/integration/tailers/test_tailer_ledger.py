"""The rows of failed items, through crashes between any two writes: nothing is lost, no copy starts twice or early."""

from dataclasses import replace

import pytest
from scenes.ledger_rows import (
    FAILED,
    SUCCESS,
    WatchedLedger,
    copy,
    deliver,
    given_row,
    no_rows,
    overview,
    rows,
    settles,
)

from tailrace.model.ledger import LedgerPlace
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.log.log import Record


async def test_a_failed_item_has_a_row_until_its_copy_is_over_and_the_checkpoint_has_passed(
    stores, scheduler, parking, start_all, eventually
):
    scheduler.decide = lambda flight, index: FAILED if flight.attempts[index] == 1 else SUCCESS
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(3)])
    tailers = await start_all()
    await eventually(lambda: overview(tailers).parked == 3)
    assert {(row.place, row.n, row.attempts) for row in await rows(stores)} == {(LedgerPlace.PARKING, 1, 1)}  # due soon
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
    row = await given_row(stores, LedgerPlace.PARKING)
    scheduler.allow("f")
    tailers = await start_all()
    await settles(tailers, eventually, "first", 1)
    [item] = parking.items
    assert (item.position, item.n, item.due, item.attempt, item.first_seen) == (0, 1, row.due, 2, row.first_seen)
    assert not scheduler.flights
    assert [one.place for one in await rows(stores)] == [LedgerPlace.PARKING]  # as it was: it is due


async def test_an_owner_that_dies_before_the_row_says_parked_makes_copies_of_which_one_starts(
    stores, scheduler, parking, start_all, eventually
):
    """Given an owner that died between the append and the row: the next one appends again."""
    row = await given_row(stores, LedgerPlace.PARKING)
    scheduler.allow("f")
    tailers = await start_all()
    await settles(tailers, eventually, "first", 1)
    await deliver(stores, copy(row))
    await deliver(stores, *parking.items)
    await settles(tailers, eventually, "due", 2)
    assert scheduler.ids == ["first/0/0"]
    await no_rows(stores, eventually)


@pytest.mark.parametrize("place", [LedgerPlace.PARKED, LedgerPlace.RUNNING])
async def test_what_is_elsewhere_is_never_run_from_the_source(stores, scheduler, parking, start_all, eventually, place):
    await given_row(stores, place)
    await stores.log.append("s", 0, [Record(b"healthy")])
    scheduler.allow("f")
    tailers = await start_all()
    await eventually(lambda: overview(tailers).lag == 0)
    assert scheduler.ids == ["first/0/1"] and not parking.items


async def test_copies_of_one_item_start_once(stores, scheduler, start_all, eventually):
    row = await given_row(stores, LedgerPlace.PARKED)
    scheduler.allow("f")
    tailers = await start_all()
    await deliver(stores, copy(row), copy(row))
    await deliver(stores, copy(row))
    await settles(tailers, eventually, "due", 3)
    assert scheduler.ids == ["first/0/0"] and scheduler.flights[0].fence > row.fence
    await no_rows(stores, eventually)


async def test_a_copy_that_comes_while_another_runs_is_over(stores, scheduler, start_all, eventually):
    row = await given_row(stores, LedgerPlace.PARKED)
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
    row = await given_row(stores, LedgerPlace.PARKED)
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "flaky", after=60.0)
    scheduler.allow("f")
    tailers = await start_all()
    await deliver(stores, copy(row))
    await eventually(lambda: overview(tailers, "due") is not None and overview(tailers, "due").parked == 1)
    [again] = await rows(stores)
    assert (again.place, again.n, again.attempts, parking.items[0].n) == (LedgerPlace.PARKED, 2, 2, 2)
    await deliver(stores, copy(row), copy(row))
    await settles(tailers, eventually, "due", 3)
    assert len(scheduler.ids) == 1
    assert await rows(stores) == [again]


async def test_a_copy_that_finds_a_later_parking_appends_that_one(stores, scheduler, parking, start_all, eventually):
    """Given a due tailer that died between the row and the append of a second parking (L18)."""
    row = await given_row(stores, LedgerPlace.RUNNING)
    later = row._replace(place=LedgerPlace.PARKING, n=2, attempts=2, due=77.0)
    await stores.ledger.write("first", "0", [(row, later)], None)
    await deliver(stores, copy(row))
    scheduler.allow("f")
    tailers = await start_all()
    await settles(tailers, eventually, "due", 1)
    assert {(item.n, item.due, item.attempt) for item in parking.items} == {(2, 77.0, 3)}
    assert not scheduler.flights


async def test_a_copy_that_a_dead_tailer_ran_is_run_again_alone(stores, scheduler, start_all, eventually):
    row = await given_row(stores, LedgerPlace.RUNNING)
    await deliver(stores, copy(row))
    scheduler.allow("f")
    await start_all()
    await eventually(lambda: len(scheduler.ids) == 1)
    [flight] = scheduler.flights
    assert flight.extras[0].alone and flight.fence > row.fence and flight.attempts == [2]
    await no_rows(stores, eventually)


async def test_rows_go_although_an_owner_died_between_its_checkpoint_and_the_sweep(
    stores, scheduler, start_all, eventually
):
    row = await given_row(stores, LedgerPlace.PARKED)
    owner = await stores.ownership.read("first", "")
    await stores.checkpoints.open("first", owner.epoch)
    await stores.checkpoints.commit("first", owner.epoch, {"0": Mark(1)})
    scheduler.allow("f")
    await start_all()
    await deliver(stores, copy(row))
    await eventually(lambda: scheduler.ids == ["first/0/0"])
    await no_rows(stores, eventually)
