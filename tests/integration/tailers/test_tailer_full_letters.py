"""Items whose dead letters find no room: they stay in their source, whatever it is and however they came there, and go
on when there is some."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.claim import State
from tailrace.model.dead_letter import LetterFilter
from tailrace.model.job import JobItem, JobSpec, TreeSpec
from tailrace.model.ledger import LedgerPlace
from tailrace.model.outcome import Outcome
from tailrace.model.parked import parked_headers
from tailrace.model.workload import Ended, Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.jobs.jobs import Feeding
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.tailers.departures import destinations, durable

LOG, QUEUE = {"kind": "log", "stream": "s"}, {"kind": "queue"}
SUCCESS, FATAL = Ended(Outcome.SUCCESS), Ended(Outcome.FATAL, "broken")
BOUND = 2


@pytest.fixture
async def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedStores]:
    for each in (destinations, durable):
        monkeypatch.setattr(each, "LOOK", 0.05)
    async with EmbeddedStores(tmp_path / "data", StoresConfig(max_dead_letters=BOUND)) as stores:
        yield stores


async def letters(stores: Any) -> list[Any]:
    found: list[Any] = await stores.dead_letters.list(LetterFilter(), 1000)
    return found


async def give_up(stores: Any, most: int = 1000) -> int:
    """Makes room; returns for how many."""
    found = await letters(stores)
    return int(await stores.dead_letters.remove([each.number for each in found[:most]]))


async def fill(stores: Any, *payloads: bytes, **record: Any) -> None:
    await stores.log.append("s", 0, [Record(payload, **record) for payload in payloads])


async def position(stores: Any) -> int:
    marks = await stores.checkpoints.load("t")
    return int(marks["0"].position) if "0" in marks else 0


def bad(flight: Any, index: int) -> Ended:
    return FATAL if flight.payloads[index].startswith(b"bad") else SUCCESS


async def test_items_of_a_stream_that_wait_take_no_window_from_others(
    stores: Any, scheduler: Any, start: Any, eventually: Any
) -> None:
    # Given a stream that fails for good more often than its window is wide
    scheduler.decide = bad
    scheduler.allow("f")
    await fill(stores, *[b"bad %d" % n for n in range(30)], *[b"good %d" % n for n in range(30)])
    # When it is read, Then all that is well succeeds, and the others are held in their source
    tailer = await start(source=LOG, function="f", window={"items": 8})
    await eventually(lambda: tailer.overview().settled == 30)
    await eventually(lambda: tailer.overview().held == 28)
    assert tailer.overview().dead == BOUND == len(await letters(stores))
    await eventually(lambda: "as many dead letters as are kept" in tailer._pump.held_because)
    assert len({*scheduler.ids}) == 60
    # And its checkpoint waits, and a drain does not
    assert await position(stores) <= BOUND
    await tailer.drain(5)
    assert tailer._pump.status().state == "draining" and not tailer._pump.busy
    await tailer.stop()
    # And its successor loses none of them
    tailer = await start(source=LOG, function="f", window={"items": 8})
    while await position(stores) < 60:
        await give_up(stores)
        await asyncio.sleep(0.01)
    assert {flight.attempts[index] for flight in scheduler.flights for index in range(len(flight))} == {1}
    [audit] = tailer.audits()
    assert audit.good and audit.counts == {"succeeded": 30, "dead": 30}


async def test_in_order_what_is_behind_waits_and_other_keys_pass(
    stores: Any, scheduler: Any, start: Any, eventually: Any
) -> None:
    # Given a full room, and a key whose first item fails for good
    scheduler.decide = bad
    scheduler.allow("f")
    await fill(stores, *[b"bad %d" % n for n in range(BOUND)], key="others")
    tailer = await start(source=LOG, function="f", order="key", key={"record": True})
    await eventually(lambda: tailer.overview().dead == BOUND)
    await fill(stores, b"bad", b"good", key="a")
    await fill(stores, b"good", key="b")
    # Then the other key's item runs, and not the one behind it
    await eventually(lambda: tailer.overview().settled == 1)
    assert f"t/0/{BOUND + 1}" not in scheduler.ids
    # When there is room, Then both go, in order
    assert await give_up(stores, 1) == 1
    await eventually(lambda: tailer.overview().settled == 2)
    assert tailer.overview().dead == BOUND + 1
    assert scheduler.ids[-2:] == [f"t/0/{BOUND}", f"t/0/{BOUND + 1}"]


async def test_copies_of_the_delay_service_wait_there(
    stores: Any, scheduler: Any, parking: Any, start_all: Any, eventually: Any
) -> None:
    # Given retries that are due and fail for the last time, one more than there is room for
    ends = Ended(Outcome.RETRY, "flaky", after=0.0)
    scheduler.decide = lambda flight, index: ends
    scheduler.allow("f")
    await fill(stores, *[b""] * (BOUND + 1))
    tailers = await start_all()
    await eventually(lambda: len(parking.items) == BOUND + 1)
    ends = FATAL
    due = [Record(each.payload, headers=parked_headers(each)) for each in parking.items]
    await stores.delay_log.append("due.f", 0, due)

    def overview(name: str) -> Any:
        return next(each for each in tailers.overviews() if each.name == name)

    await eventually(lambda: overview("due").dead == BOUND and overview("due").held == 1)
    assert overview("first").parked == BOUND + 1
    # When another process goes on, Then it waits there too
    tailers = await start_all()
    await tailers.expect("f")
    await eventually(lambda: overview("due").held == 1)
    # And when there is room, its letter is kept, with the attempts that it had
    assert await give_up(stores) == BOUND
    await eventually(lambda: overview("due").dead == 1)
    assert [each.attempts for each in await letters(stores)] == [2]
    assert {row.entry.place for row in await stores.ledger.list("first", 100)} <= {LedgerPlace.DEAD}


async def test_what_cannot_run_again_waits_with_its_letter(
    stores: Any, scheduler: Any, start: Any, eventually: Any
) -> None:
    # Given items that expired before anybody could run them, more than there is room for
    await fill(stores, *[b"late"] * (BOUND + 2))
    tailer = await start(source=LOG, function="f", expires="1ms", on_expiry="dead_letter")
    scheduler.allow("f")
    await eventually(lambda: tailer.overview().dead == BOUND)
    await asyncio.sleep(0.2)
    assert (len(await letters(stores)), tailer.overview().dead) == (BOUND, BOUND)
    # When there is room for one, Then one comes, and a drain waits for none
    await give_up(stores, 1)
    await eventually(lambda: tailer.overview().dead == BOUND + 1)
    await tailer.drain(5)
    assert not tailer._pump.busy
    assert scheduler.ids == []


@pytest.mark.parametrize("most", [1, 2])
async def test_a_crash_too_many_is_not_counted(
    most: int, stores: Any, scheduler: Any, start: Any, eventually: Any
) -> None:
    # Given items of a queue that end their processes, more than there is room for
    scheduler.decide = lambda flight, index: Ended(Outcome.LOST, "died", crashed=True)
    scheduler.allow("f")
    stored = [each.id for each in await stores.queue.submit([NewItem(Kind("f"), b"") for _ in range(BOUND + 1)])]
    tailer = await start(source=QUEUE, retry={"max_crashes": most})
    await eventually(lambda: tailer.overview().dead == BOUND)
    await eventually(lambda: tailer.overview().held == 1)
    # Then one waits there as before that crash, and runs alone
    [waits] = [each for each in await stores.queue.status(stored) if each.state != State.FATAL_FAILURE]
    assert (waits.state, waits.attempts, waits.crashes) == (State.NEW, 0, 1)
    scheduler.flights.clear()
    # And goes on at once when there is room
    assert await give_up(stores) == BOUND
    await eventually(lambda: tailer.overview().dead == BOUND + 1)
    assert {extra.alone for flight in scheduler.flights for extra in flight.extras.values()} == {True}


async def test_what_ended_its_process_in_a_stream_runs_alone_again(
    stores: Any, scheduler: Any, start: Any, eventually: Any
) -> None:
    scheduler.decide = lambda flight, index: Ended(Outcome.LOST, "died", crashed=True)
    scheduler.allow("f")
    await fill(stores, *[b""] * (BOUND + 1))
    tailer = await start(source=LOG, function="f", retry={"max_crashes": 1})
    await eventually(lambda: tailer.overview().dead == BOUND and tailer.overview().held == 1)
    scheduler.flights.clear()
    assert await give_up(stores) == BOUND
    await eventually(lambda: tailer.overview().dead == BOUND + 1)
    [again] = scheduler.flights
    assert (again.attempts, again.extras[0].crashes, again.extras[0].alone) == ([1], 1, True)


async def test_an_item_of_a_job_stays_open(stores: Any, scheduler: Any, start: Any, eventually: Any) -> None:
    tree = TreeSpec("job-1", "t", [JobSpec("a", "f")])
    scheduler.decide = bad
    scheduler.allow("f")
    await stores.jobs.create(tree, [Feeding(Kind("f", 2))])
    await stores.jobs.add(tree.id, "", "call", [JobItem(b"bad") for _ in range(BOUND + 1)])
    tailer = await start(source=QUEUE)
    await eventually(lambda: tailer.overview().dead == BOUND and tailer.overview().held == 1)
    assert (await stores.jobs.show(tree.id)).jobs[0].failed == BOUND
    assert await give_up(stores) == BOUND
    await eventually(lambda: tailer.overview().dead == BOUND + 1)
    assert (await stores.jobs.show(tree.id)).jobs[0].failed == BOUND + 1


async def test_a_letter_of_what_is_over_already_comes_later(
    stores: Any, scheduler: Any, start: Any, eventually: Any
) -> None:
    # Given items of a job that returned what the next job cannot take, more than there is room for
    tree = TreeSpec("job-1", "t", [JobSpec("a", "f"), JobSpec("b", "g", ("a",), each=True)])
    scheduler.decide = lambda flight, index: Ended(Outcome.SUCCESS, result=b"7")
    scheduler.allow("f")
    await stores.jobs.create(tree, [Feeding(Kind(name, 2)) for name in ("f", "g")])
    await stores.jobs.add(tree.id, "", "call", [JobItem(b"1") for _ in range(BOUND + 1)])
    tailer = await start(source=QUEUE)
    await eventually(lambda: tailer.overview().settled == BOUND + 1)
    await eventually(lambda: tailer.overview().dead == BOUND)
    # When there is room, Then it comes without another run
    assert await give_up(stores) == BOUND
    await eventually(lambda: tailer.overview().dead == BOUND + 1)
    assert len(scheduler.ids) == BOUND + 1
