"""A store that stalls for longer than a lease: items that are out, or over, are not handed out again as soon as it
answers."""

import asyncio
import contextlib
import sqlite3
import time

import pytest

from tailrace.model.claim import State
from tailrace.model.errors import Unavailable
from tailrace.model.lease import LeaseSizes, wait_for_source
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.tailers.pumps import queue_pump

SUCCESS = Ended(Outcome.SUCCESS)
HEARTBEAT = 0.1
LEASE = wait_for_source(LeaseSizes.of_heartbeat(HEARTBEAT))
QUEUE = {"kind": "queue"}


@pytest.fixture
async def out(stores, scheduler, start, eventually, monkeypatch):
    """Has a tailer hold items, each of a claim of its own: more than are renewed at once. No claim waits for as long as
    a lease of this test lasts, as none does elsewhere."""
    monkeypatch.setattr(queue_pump, "LEASE_WAIT", 0.1)
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    tailer = await start(HEARTBEAT, source=QUEUE)
    for number in range(queue_pump.RENEWALS + 8):
        await stores.queue.submit([NewItem(Kind("f", 2), b"")])
        await eventually(lambda number=number: len(scheduler.flights) == number + 1)
    yield tailer
    assert len(scheduler.ids) == len(set(scheduler.ids)), "handed out twice"


def end(scheduler, flights):
    for flight in flights:
        for index in range(len(flight)):
            scheduler.session.end(flight, index, SUCCESS)


async def settled(stores, scheduler, tailer, eventually):
    await eventually(lambda: tailer.overview().settled == len(scheduler.flights))
    assert {each.state for each in await stores.queue.status(scheduler.ids)} == {State.SUCCESS}


async def test_what_cannot_be_settled_is_held_until_it_is(stores, scheduler, out, eventually, monkeypatch):
    # Given a store that takes renewals, and for two leases no settlements
    settle, until, tries = stores.queue.settle, time.monotonic() + 2 * LEASE, []

    async def away(*arguments):
        if time.monotonic() < until:
            tries.append(arguments[0])
            raise Unavailable("no settlements now")
        return await settle(*arguments)

    monkeypatch.setattr(stores.queue, "settle", away)
    # When all end
    end(scheduler, list(scheduler.flights))
    # Then they are over once it does, of which the tailer hears within about a heartbeat
    await settled(stores, scheduler, out, eventually)
    assert max(tries.count(fence) for fence in tries) >= 2 * LEASE / (1.5 * HEARTBEAT) / 2
    assert time.monotonic() < until + 5 * HEARTBEAT + 1


async def test_a_file_that_somebody_locked_for_two_leases(stores, scheduler, out, eventually, tmp_path):
    # Given a writer that waits for another process
    other = sqlite3.connect(tmp_path / "data" / "queue.db", isolation_level=None)
    with contextlib.closing(other):
        other.execute("BEGIN IMMEDIATE")
        # When half of them end, and the others while those are being settled, and every lease runs out meanwhile
        end(scheduler, scheduler.flights[:20])
        await eventually(lambda: out.overview().in_flight == len(scheduler.flights) - 20)
        await asyncio.sleep(HEARTBEAT)
        end(scheduler, scheduler.flights[20:])
        await asyncio.sleep(2 * LEASE)
        other.execute("ROLLBACK")
    # Then the claim that waited beside them takes none of them
    await settled(stores, scheduler, out, eventually)


async def test_what_is_out_is_renewed_before_more_is_claimed(stores, scheduler, out, eventually, monkeypatch):
    # Given a store that was away for two leases, and takes claims a little sooner than renewals
    calls, until = [], time.monotonic() + 2 * LEASE
    monkeypatch.setattr(queue_pump, "LEASE_WAIT", 0.01)

    def away(name, until, real):
        async def call(*arguments):
            if time.monotonic() < until:
                raise Unavailable("away")
            calls.append(name)
            return await real(*arguments)

        monkeypatch.setattr(stores.queue, name, call)

    away("lease", until, stores.queue.lease)
    away("renew", until + 3 * HEARTBEAT, stores.queue.renew)
    # When it answers again, then it is told what is out, and then asked for more
    await eventually(lambda: "lease" in calls)
    assert calls.index("lease") >= len(scheduler.flights)
    end(scheduler, list(scheduler.flights))
    await settled(stores, scheduler, out, eventually)


async def test_a_renewal_that_failed_is_tried_again_before_the_next_heartbeat(
    stores, scheduler, start, eventually, monkeypatch
):
    # Given a store that is away when a claim is to be renewed, and is back at once
    renew, tries = stores.queue.renew, []

    async def away(*arguments):
        tries.append(time.monotonic())
        if len(tries) == 1:
            raise Unavailable("away")
        return await renew(*arguments)

    monkeypatch.setattr(stores.queue, "renew", away)
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    heartbeat = 1.5
    tailer = await start(heartbeat, source=QUEUE)
    await stores.queue.submit([NewItem(Kind("f", 2), b"")])
    # When it is asked again, Then that is long before the lease is over
    await eventually(lambda: len(tries) == 2)
    assert tries[1] - tries[0] < heartbeat / 2
    end(scheduler, list(scheduler.flights))
    await settled(stores, scheduler, tailer, eventually)
