"""Items that run longer than `window.detach_after`: the frontier passes them, and they end as all others do."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.model.errors import InvalidPayload
from tailrace.model.ledger import LedgerPlace
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record

SOURCE = {"kind": "log", "stream": "s"}
WINDOW = {"detach_after": "0.2s"}
SUCCESS = Ended(Outcome.SUCCESS)


@pytest.fixture
def long_ones(scheduler):
    """Lets items whose payload begins with an l run on, and the others succeed."""
    scheduler.decide = lambda flight, index: None if flight.payloads[index][:1] == b"l" else SUCCESS
    scheduler.allow("f")
    return scheduler


async def fill(stores, long=2, short=5):
    payloads = [b"l%d" % n for n in range(long)] + [b"s%d" % n for n in range(short)]
    await stores.log.append("s", 0, [Record(payload) for payload in payloads])


async def passed(stores, position):
    """Waits until the checkpoint is at this position."""
    async with asyncio.timeout(20):
        while (await stores.checkpoints.load("t")).get("0", (0,))[0] != position:
            await asyncio.sleep(0.01)


async def rows(stores):
    return [row.entry for row in await stores.ledger.list("t", 100)]


async def until_rows(stores, wanted):
    async with asyncio.timeout(20):
        while [(row.position, row.place, row.n, row.is_detached) for row in await rows(stores)] != wanted:
            await asyncio.sleep(0.01)


DETACHED = [(0, LedgerPlace.PARKING, 1, True), (1, LedgerPlace.PARKING, 1, True)]


async def detached(stores, start, long=2):
    """A tailer whose long items, and nothing else, were passed while they run."""
    await fill(stores, long)
    tailer = await start(source=SOURCE, function="f", window=WINDOW)
    await passed(stores, long + 5)
    assert [(row.position, row.is_detached) for row in await rows(stores)] == [(at, True) for at in range(long)]
    return tailer


async def test_what_runs_long_is_passed_and_its_success_ends_its_row(stores, long_ones, parking, start, eventually):
    # Given two items that were passed while they run, each with a guard
    tailer = await detached(stores, start)
    assert [(item.id, item.payload, item.n) for item in parking.items] == [("t/0/0", b"l0", 1), ("t/0/1", b"l1", 1)]
    assert tailer.overview().in_flight == 2
    (audit,) = tailer.audits()
    assert audit.good and audit.counts == {"succeeded": 5, "delayed": 2}
    # When they succeed
    for index in (0, 1):
        long_ones.session.end(long_ones.flights[0], index, SUCCESS)
    # Then nothing of them is left, and nothing was counted twice
    await until_rows(stores, [])
    await eventually(lambda: tailer.overview().in_flight == 0 and tailer.overview().settled == 7)
    assert (await stores.ledger.delayed("t"))["0"].done == 2


async def test_what_ends_badly_after_it_was_passed_goes_its_way_and_is_not_handed_out_by_its_source(
    stores, long_ones, parking, start, eventually
):
    await detached(stores, start, long=4)
    flight = long_ones.flights[0]
    # When one fails, one is fatal, one is handed back and one is lost with its process
    ends = (
        Ended(Outcome.RETRY, "no"),
        Ended(Outcome.FATAL, "never"),
        Ended(Outcome.HELD),
        Ended(Outcome.LOST, crashed=1),
    )
    for index, ended in enumerate(ends):
        long_ones.session.end(flight, index, ended)
    # Then one is a dead letter, and the others have their next parking, under their own fence
    await until_rows(stores, [(at, LedgerPlace.PARKING, 2, False) for at in (0, 2, 3)])
    await eventually(lambda: len(parking.items) == 7)
    again = {item.position: (item.n, item.attempt, item.crashes, item.fence) for item in parking.items[4:]}
    assert again == {0: (2, 2, 0, flight.fence), 2: (2, 1, 0, flight.fence), 3: (2, 1, 1, flight.fence)}
    letter = await stores.dead_letters.get("t/0/1")
    assert (letter.payload, letter.reason) == (b"l1", "never")
    assert long_ones.ids.count("t/0/2") == long_ones.ids.count("t/0/3") == 1


async def test_what_a_lost_session_had_out_is_parked_when_it_cannot_run_any_more(
    stores, long_ones, parking, start, eventually
):
    tailer = await detached(stores, start)
    # When the scheduler is replaced by one that knows nothing
    await long_ones.restart()
    # Then the copies come after its lease, not before
    assert await rows(stores) != []
    assert all(row.is_detached for row in await rows(stores))
    await until_rows(stores, [(0, LedgerPlace.PARKING, 2, False), (1, LedgerPlace.PARKING, 2, False)])
    await eventually(lambda: len(parking.items) == 4)
    assert tailer.overview().in_flight == 0


async def test_what_a_dead_owner_had_detached_is_appended_again_from_the_source(
    stores, long_ones, parking, start, eventually
):
    # Given a tailer that ends while both run
    tailer = await detached(stores, start)
    await tailer.stop()
    # When another one takes over, where nobody confirms that they run still
    long_ones.flights.clear()
    await start(source=SOURCE, function="f", window=WINDOW)
    # Then they may start as copies of the same parking, at once, and are not run from the source
    await until_rows(stores, [(0, LedgerPlace.PARKING, 1, False), (1, LedgerPlace.PARKING, 1, False)])
    await eventually(lambda: len(parking.items) == 4)
    assert [(item.payload, item.n) for item in parking.items[2:]] == [(b"l0", 1), (b"l1", 1)]
    assert all(item.due < item.first_seen + 30 for item in parking.items[2:])
    assert not long_ones.flights


async def test_an_end_that_comes_while_the_row_is_written_waits_for_it(stores, long_ones, parking, start, eventually):
    # Given a delay service that is away when the items are to be detached
    parking.failures = 1 << 30
    await fill(stores)
    tailer = await start(source=SOURCE, function="f", window=WINDOW)
    await until_rows(stores, DETACHED)
    # When both end meanwhile
    long_ones.session.end(long_ones.flights[0], 0, SUCCESS)
    long_ones.session.end(long_ones.flights[0], 1, Ended(Outcome.RETRY, "no"))
    await eventually(lambda: tailer.overview().in_flight == 0)
    assert tailer._pump.unaccounted == 0
    assert [audit.verdict() for audit in tailer.audits() if not audit.good] == []
    # Then they end when it is back, and the frontier passes them
    parking.failures = 0
    await passed(stores, 7)
    await until_rows(stores, [(1, LedgerPlace.PARKING, 2, False)])


async def test_what_the_delay_service_refuses_holds_the_frontier_until_it_ends(stores, long_ones, parking, start):
    async def refuse(items):
        raise InvalidPayload("too large")

    parking.park = refuse
    await fill(stores)
    tailer = await start(source=SOURCE, function="f", window=WINDOW)
    await until_rows(stores, DETACHED)
    await asyncio.sleep(0.3)  # that nothing happens cannot be waited for
    assert (await stores.checkpoints.load("t")).get("0", (0,))[0] == 0
    for index in (0, 1):
        long_ones.session.end(long_ones.flights[0], index, SUCCESS)
    await passed(stores, 7)
    await until_rows(stores, [])
    assert tailer.overview().in_flight == 0
