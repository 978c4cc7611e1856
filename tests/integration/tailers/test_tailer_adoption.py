"""A tailer dies, another one takes its stream over below a real scheduler: running items go on and are not run
again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.ownership.ownership import Owner
from tailrace.tailers.takeover.adoption_calls import AdoptionCalls

sys.path.insert(0, str(Path(__file__).parent))
from held_worker import LONG, SHORT, Begin, HeldWorker, fill


async def position(stores: Any) -> int:
    marks = await stores.checkpoints.load("t")
    return marks["0"].position if "0" in marks else 0


async def test_what_runs_goes_on_under_the_next_owner_and_settles_there(
    begin: Begin, stores: Any, eventually: Any
) -> None:
    # Given a tailer with four items running and more waiting, and leases much longer than this test
    place = await begin(LONG)
    await fill(stores, 8)
    first = await place.tailer()
    await eventually(lambda: len(place.worker.open) == 4)
    old = await stores.ownership.read("t", "")
    # When it ends without its items having ended, one of which ends in between, and another one comes
    await place.die(first)
    place.worker.end("t/0/2")
    second = await place.tailer()
    # Then it takes over at once: well within the old owner's lease
    async with asyncio.timeout(10.0):
        while (row := await stores.ownership.read("t", "")).epoch <= old.epoch:
            await asyncio.sleep(0.005)
    assert row.holder != old.holder
    await eventually(lambda: second.overview().state == "running")
    # And what runs ends there, and is never started again; what waited is
    while len(place.worker.started) < 8 or place.worker.open:
        await eventually(lambda: place.worker.open)
        place.worker.end(next(iter(place.worker.open)))
        await asyncio.sleep(0)
    await eventually(lambda: second.overview().settled == 8)
    assert sorted(place.worker.started) == [f"t/0/{n}" for n in range(8)]
    assert set(place.worker.attempts) == {1}
    assert old.epoch << 32 < place.worker.fences["t/0/1"] < place.worker.fences["t/0/7"] > row.epoch << 32
    await second.stop()
    assert await position(stores) == 8


async def test_what_was_adopted_and_fails_is_parked_with_its_payload(
    begin: Begin, stores: Any, parking: Any, eventually: Any
) -> None:
    place = await begin(LONG)
    await fill(stores, 2)
    first = await place.tailer()
    await eventually(lambda: len(place.worker.open) == 2)
    await place.die(first)
    second = await place.tailer()
    await eventually(lambda: second.overview().state == "running")
    place.worker.end("t/0/1", ended=Ended(Outcome.RETRY, "no luck"))
    await eventually(lambda: second.overview().parked == 1)
    assert [(item.payload, item.attempt) for item in parking.items] == [(b"1", 2)]
    place.worker.end("t/0/0")
    await eventually(lambda: second.overview().settled == 1)


async def test_many_owners_one_after_the_other_start_each_item_once(begin: Begin, stores: Any, eventually: Any) -> None:
    place = await begin(LONG)
    await fill(stores, 12)
    for least in (0, 1, 1, 1):
        tailer = await place.tailer()
        # Each hears of the item that ended while nobody was there; it would be run again if it died before settling it.
        await eventually(lambda tailer=tailer, least=least: tailer.overview().settled == least)
        await eventually(lambda: len(place.worker.open) == 4)
        await place.die(tailer)
        place.worker.end(next(iter(place.worker.open)))
    tailer = await place.tailer()
    while len(place.worker.started) < 12 or place.worker.open:
        await eventually(lambda: place.worker.open)
        place.worker.end(next(iter(place.worker.open)))
        await asyncio.sleep(0)
    await eventually(lambda: tailer.overview().in_flight == 0 and not tailer.overview().held)
    assert sorted(place.worker.started) == sorted(f"t/0/{n}" for n in range(12))


async def test_a_taker_asks_every_scheduler_that_the_row_names(begin: Begin, stores: Any, eventually: Any) -> None:
    # Given a tailer with four items running below one scheduler, which dies, and leases much longer than this test
    place, other = await begin(LONG), await begin(LONG)
    await fill(stores, 6)
    first = await place.tailer()
    await eventually(lambda: len(place.worker.open) == 4)
    old = await stores.ownership.read("t", "")
    await place.die(first)
    # When another one comes to another scheduler, then the first one confirms: it takes over at once
    second = await other.tailer()
    await eventually(lambda: second.overview().state == "running")
    row = await stores.ownership.read("t", "")
    assert row.epoch > old.epoch and set(old.schedulers) < set(row.schedulers), "who comes next is to ask both"
    # And runs what waited; what runs below the first one goes on there, and settles here however it ends
    await eventually(lambda: sorted(other.worker.open) == ["t/0/4", "t/0/5"])
    other.worker.end("t/0/4", "t/0/5")
    place.worker.end("t/0/0", "t/0/1")
    place.worker.end("t/0/2", ended=Ended(Outcome.FATAL, "no"))
    place.worker.end("t/0/3", ended=Ended(Outcome.HELD))
    await eventually(lambda: other.worker.open)
    other.worker.end("t/0/3")
    await eventually(lambda: second.overview().settled + second.overview().dead == 6)
    assert other.worker.started == ["t/0/4", "t/0/5", "t/0/3"], "what was handed back runs again"


async def test_what_runs_at_another_scheduler_is_renewed_there(begin: Begin, stores: Any, eventually: Any) -> None:
    # Given a tailer that took over from another one, whose item runs at another scheduler
    place, other = await begin(LONG), await begin(LONG)
    await fill(stores, 1)
    first = await place.tailer()
    await eventually(lambda: len(place.worker.open) == 1)
    await place.die(first)
    second = await other.tailer()
    await eventually(lambda: second.overview().in_flight == 1)

    def held_until() -> float:
        return max(each.held.ends() for each in place.scheduler.core.tailers.values() if each.connected)

    await eventually(held_until)
    before = held_until()
    # When that scheduler asks its sessions to renew
    place.scheduler.core.heartbeat()
    place.scheduler._soon()
    # Then it holds the item for longer
    await eventually(lambda: held_until() > before)
    assert not other.worker.started
    place.worker.end("t/0/0")
    await eventually(lambda: second.overview().settled == 1)


async def test_whoever_comes_after_a_tailer_with_a_side_adopts_at_both(
    begin: Begin, stores: Any, eventually: Any
) -> None:
    # Given a tailer that took over from another one, whose items run at another scheduler, and dies as well
    place, other = await begin(LONG), await begin(LONG)
    await fill(stores, 6)
    first = await place.tailer()
    await eventually(lambda: len(place.worker.open) == 4)
    await place.die(first)
    second = await other.tailer()
    await eventually(lambda: len(other.worker.open) == 2)
    await second.stop()
    # When a third one comes, whichever scheduler it is with
    await place.gone()
    third = await place.tailer()
    await eventually(lambda: third.overview().in_flight == 6)
    # Then it hears how all of them end, and nothing runs twice
    place.worker.end(*list(place.worker.open))
    other.worker.end(*list(other.worker.open))
    await eventually(lambda: third.overview().settled == 6)
    assert len(place.worker.started) + len(other.worker.started) == 6


async def test_a_scheduler_that_listens_where_another_did_does_not_confirm_for_it(begin: Begin, stores: Any) -> None:
    place = await begin(LONG)
    former = Owner(1, 1, "somebody", LONG.source, (f"former@{place.address}", "nowhere"))
    asking = AdoptionCalls("t", "", LONG, SYSTEM_CLOCK)
    assert await asking.ask(former, "", 10.0) == []
    here = former._replace(schedulers=(place.scheduler.id,))
    assert [each.scheduler for each in await asking.ask(here, "", 10.0)] == [place.scheduler.id]


async def test_a_replaced_scheduler_cannot_confirm_for_the_former_one(
    begin: Begin, stores: Any, eventually: Any
) -> None:
    # Given an item that runs below a scheduler that dies with its tailer
    place = await begin(SHORT)
    await fill(stores, 1)
    first = await place.tailer()
    await eventually(lambda: len(place.worker.open) == 1)
    loop = asyncio.get_running_loop()
    died = loop.time()
    await place.end_scheduler()
    await first.stop()
    # When another scheduler and another tailer come, then the item is not started before its lease is over
    await place.start()
    await place.tailer()
    await eventually(lambda: len(place.worker.open) == 1)
    assert loop.time() - died >= SHORT.scheduler


async def test_when_tailer_and_worker_die_together_the_next_owner_waits_for_the_worker_alone(
    begin: Begin, stores: Any, eventually: Any
) -> None:
    # Given an item that runs at a worker which dies with its tailer
    place = await begin(SHORT)
    await fill(stores, 1)
    first = await place.tailer()
    await eventually(lambda: len(place.worker.open) == 1)
    loop = asyncio.get_running_loop()
    died = loop.time()
    await place.worker.close()
    await place.die(first)
    # When another worker and another tailer come
    place.worker = HeldWorker(place.streams, place.sizes)
    place.worker.start()
    second = await place.tailer()
    await eventually(lambda: second.overview().state == "running")
    taken = loop.time() - died
    # Then the stream is taken at once, and the item is handed out again when the dead worker's lease is over
    await eventually(lambda: len(place.worker.open) == 1)
    assert taken < SHORT.source
    assert loop.time() - died > SHORT.worker - SHORT.heartbeat
    assert place.worker.fences["t/0/0"] > (await stores.ownership.read("t", "")).epoch << 32
    assert place.worker.attempts == [1], "nobody knows that it crashed anything"
    place.worker.end("t/0/0")
    await eventually(lambda: second.overview().settled == 1)


async def test_cuts_while_another_one_wants_the_row_start_nothing_twice(
    begin: Begin, stores: Any, eventually: Any
) -> None:
    # Given an owner whose connections are cut again and again while another one wants its row
    place = await begin(LONG)
    await fill(stores, 2)
    first = await place.tailer()
    await eventually(lambda: len(place.worker.open) == 2)
    second = await place.tailer()

    def settled() -> int:
        return first.overview().settled + second.overview().settled

    for _ in range(5):
        cut = [each for each in place.sessions() if each.connection is not None]
        for each in cut:
            each._task.cancel()
        await eventually(lambda cut=cut: all(each._task.done() or each.connection is not None for each in cut))
        await eventually(place.has_owner)
    # Then whoever has the row at the end settles both, and each ran once
    place.worker.end("t/0/0", "t/0/1")
    await eventually(lambda: settled() == 2)
    assert sorted(place.worker.started) == ["t/0/0", "t/0/1"]


@pytest.mark.parametrize("forgotten", [False, True])
async def test_what_was_passed_while_it_runs_is_adopted_and_ends_in_its_row(
    begin: Begin, stores: Any, parking: Any, eventually: Any, forgotten: bool
) -> None:
    # Given items that were passed while they run, perhaps forgotten by their source since
    place = await begin(LONG)
    await fill(stores, 4)
    window = {"detach_after": "0.2s"}
    first = await place.tailer(window=window)
    await eventually(lambda: len(place.worker.open) == 4)
    place.worker.end("t/0/3")
    async with asyncio.timeout(10):
        while await position(stores) != 4:
            await asyncio.sleep(0.01)
    # When their tailer dies, and another one comes
    await place.die(first)
    if forgotten:
        await stores.log.trim("s", 0, 4)
    second = await place.tailer(window=window)
    await eventually(lambda: second.overview().in_flight == 3)
    assert [audit.verdict() for audit in second.audits() if not audit.good] == [] and second._pump.unaccounted == 0
    # Then they end there: one well, one to be tried again, one for good
    place.worker.end("t/0/0")
    place.worker.end("t/0/1", ended=Ended(Outcome.RETRY, "no luck"))
    place.worker.end("t/0/2", ended=Ended(Outcome.FATAL, "never"))
    await eventually(lambda: second.overview().in_flight == 0 and not second._pump.busy)
    rows = {row.entry.position: row.entry for row in await stores.ledger.list("t", 10)}
    letter = await stores.dead_letters.get("t/0/2")
    if forgotten:  # their guards have the payloads: they start those, the second one to fail once more
        assert {at: (row.n, row.attempts, row.is_detached) for at, row in rows.items()} == {
            1: (1, 1, False),
            2: (1, 1, False),
        }
        assert letter is None and len(parking.items) == 3
    else:
        assert {at: (row.n, row.attempts) for at, row in rows.items()} == {1: (2, 1)}
        assert letter is not None and letter.payload == b"2"
        assert parking.items[-1].payload == b"1"
    assert len(place.worker.started) == 4
