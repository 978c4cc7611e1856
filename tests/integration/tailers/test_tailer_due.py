"""Due items come back through an ordinary tailer of their own, unchanged."""

import asyncio
import time

import pytest

from tailrace.model.dead_letter import LetterFilter
from tailrace.model.errors import ConfigError, StoreFull
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.parked import Parked, parked_headers
from tailrace.model.workload import Ended, Kind
from tailrace.stores.log.log import Record
from tailrace.tailers import checkpoint
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.supervisor import Tailers

SUCCESS = Ended(Outcome.SUCCESS)


@pytest.fixture
async def tailers(environment, scheduler, parking):
    config = TailerConfig.model_validate(
        {"name": "first", "source": {"kind": "log", "stream": "s"}, "function": "f", "retry": {"max_attempts": 3}}
    )
    tailers = Tailers([config], environment, scheduler.address, parking, LeaseSizes.of_heartbeat(0.1))
    await tailers.start()
    yield tailers
    await tailers.stop()


def overview(tailers, name):
    return next((one for one in tailers.overviews() if one.name == name), None)


async def deliver(stores, *items):
    records = [Record(item.payload, headers=parked_headers(item)) for item in items]
    await stores.delay_log.append("due.f", 0, records)


async def test_a_retry_is_another_source(stores, scheduler, parking, tailers, eventually):
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "flaky", after=0.0)
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"payload", headers=(("trace", "1"),))])
    await eventually(lambda: len(parking.items) == 1)
    assert overview(tailers, "due") is not None, "whoever parks expects the item back"
    first = parking.items[0]
    assert (first.tailer, first.id, first.attempt, first.headers) == ("first", "first/0/0", 2, (("trace", "1"),))
    await deliver(stores, first)
    await eventually(lambda: len(parking.items) == 2)
    second = parking.items[1]
    assert (second.tailer, second.id, second.attempt) == ("first", "first/0/0", 3)
    assert second.first_seen == first.first_seen
    await deliver(stores, second)
    await eventually(lambda: overview(tailers, "due").dead == 1)
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert (letter.id, letter.attempts, letter.tailer) == ("first/0/0", 3, "first")
    assert [flight.attempts[0] for flight in scheduler.flights] == [1, 2, 3]
    assert [flight.extras[0].headers for flight in scheduler.flights] == [(("trace", "1"),)] * 3


async def test_an_item_is_never_started_before_it_is_due(stores, scheduler, tailers, eventually):
    started = []

    def decide(flight, index):
        started.append((flight.ids[index], time.time()))
        return SUCCESS

    scheduler.decide = decide
    scheduler.allow("f")
    due = time.time() + 0.3
    await deliver(
        stores,
        Parked("first", "late", Kind("f"), b"", due, 0.0, 2),
        Parked("first", "now", Kind("f"), b"", 0.0, 0.0, 2, crashes=1),
    )
    await tailers.expect("f")
    await eventually(lambda: len(started) == 2)
    assert [id_ for id_, _ in started] == ["now", "late"] and started[1][1] >= due
    alone = [flight.extras[0].alone for flight in scheduler.flights if flight.ids == ["now"]]
    assert alone == [True]


async def test_what_is_due_of_many_functions_goes_as_one_flight(stores, scheduler, tailers, eventually):
    # Given a tailer of what is due, of three functions
    names = ["f", "g", "h"]
    await tailers.expect("f")
    await eventually(lambda: overview(tailers, "due").state == "running")
    for name in names:
        scheduler.allow(name)
        await tailers.expect(name)
    # When items of three come due together, of which one fails, and another one comes back unstarted
    fails = {"first/g/1": Ended(Outcome.FATAL, "no"), "first/h/2": Ended(Outcome.HELD, "busy")}
    scheduler.decide = lambda flight, index: fails.pop(flight.ids[index], SUCCESS)
    due = {}
    for name in names:
        parked = [Parked("first", f"first/{name}/{n}", Kind(name), b"", 0.0, 0.0, 2) for n in range(3)]
        due[f"due.{name}"] = [Record(b"", headers=parked_headers(item)) for item in parked]
    await stores.delay_log.append_together(due)
    await eventually(lambda: (overview(tailers, "due").settled, overview(tailers, "due").dead) == (8, 1))
    # Then they went together, and each settled as one of its own function
    first = [sorted({kind.function for kind in flight.kinds}) for flight in scheduler.flights if len(flight) == 3 * 3]
    assert first == [names]
    assert len(scheduler.flights) == 2
    [letter] = await stores.dead_letters.list(LetterFilter(), 10)
    assert (letter.id, letter.kind.function) == ("first/g/1", "g")
    audits = {audit.partition: audit.counts for audit in await tailers.audits("due")}
    assert audits == {"f": {"succeeded": 3}, "g": {"succeeded": 2, "dead": 1}, "h": {"succeeded": 3}}


async def test_a_due_stream_is_trimmed_behind_its_checkpoint(stores, scheduler, tailers, eventually):
    scheduler.allow("f")
    for n in range(3):
        await deliver(stores, *(Parked("first", f"{n}/{i}", Kind("f"), b"", 0.0, 0.0, 2) for i in range(10)))
    await tailers.expect("f")
    await eventually(lambda: overview(tailers, "due") is not None and overview(tailers, "due").settled == 30)
    async with asyncio.timeout(10):
        while not (await stores.delay_log.bounds("due.f"))[0].start:
            await deliver(stores, Parked("first", "more", Kind("f"), b"", 0.0, 0.0, 2))
            await asyncio.sleep(0.1)


async def test_a_record_that_is_not_a_parked_item_is_held_and_reported(stores, scheduler, tailers, eventually):
    scheduler.allow("f")
    await stores.delay_log.append("due.f", 0, [Record(b"?")])
    await tailers.expect("f")
    await eventually(lambda: overview(tailers, "due").held == 1)


async def test_two_tailers_of_one_name_are_refused(environment, scheduler, parking):
    config = TailerConfig.model_validate({"name": "t", "source": {"kind": "queue"}})
    with pytest.raises(ConfigError, match="two tailers are named 't'"):
        Tailers([config, config], environment, scheduler.address, parking, LeaseSizes())


async def test_a_full_disk_keeps_what_is_over_and_ends_no_tailer(stores, scheduler, tailers, eventually, monkeypatch):
    # Given a due stream whose head cannot be forgotten for want of room
    refused = []

    async def full(*arguments):
        refused.append(arguments)
        raise StoreFull("delay store: database or disk is full")

    monkeypatch.setattr(checkpoint, "TRIM_EVERY", 0.0)
    monkeypatch.setattr(stores.delay_log, "trim_together", full)
    scheduler.allow("f")
    now = time.time()
    await deliver(stores, Parked("first", "first/0/7", Kind("f"), b"x", now, now))
    await eventually(lambda: refused)
    # Then it goes on in the same session
    await deliver(stores, Parked("first", "first/0/8", Kind("f"), b"x", now, now))
    await eventually(lambda: overview(tailers, "due").settled == 2)
    await eventually(lambda: overview(tailers, "due").state == "running")


async def test_a_function_whose_window_is_full_holds_up_no_other(stores, scheduler, tailers, eventually):
    # Given more due items of a function without a worker than its window takes
    scheduler.allow("g")
    many = [Parked("first", f"first/0/{n}", Kind("f"), b"", 0.0, 0.0, 2) for n in range(9000)]
    await deliver(stores, *many)
    await tailers.expect("f")
    await eventually(lambda: overview(tailers, "due") is not None and overview(tailers, "due").held > 8000)
    # When items of another one come due
    parked = [Parked("first", f"first/1/{n}", Kind("g"), b"", 0.0, 0.0, 2) for n in range(20)]
    records = [Record(item.payload, headers=parked_headers(item)) for item in parked]
    await stores.delay_log.append("due.g", 0, records)
    await tailers.expect("g")
    # Then they run, and the first one's go on waiting
    await eventually(lambda: overview(tailers, "due").settled == 20)
    assert {flight.kinds[0].function for flight in scheduler.flights} == {"g"}
    assert overview(tailers, "due").held > 8000
