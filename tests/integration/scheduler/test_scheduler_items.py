"""Pushed items run, and end once, with everything that was said of them."""

from __future__ import annotations

from scenes.scheduler_place import SEND, SIZES, Place

from tailrace.model.outcome import Outcome
from tailrace.model.priority import Priority
from tailrace.model.workload import Ended, Extra, ref


async def test_a_pushed_item_runs_and_its_outcome_comes_back(place: Place) -> None:
    worker = await place.worker("send")
    tailer = await place.tailer("send")
    refs = tailer.push(SEND, SEND, SEND._replace(tenant="bob"), ids=["a", "b", "c"])
    assert await tailer.ended(refs) == [None, None, None]
    (flight,) = worker.flights.values()
    assert (flight.ids, flight.payloads) == (["a", "b", "c"], [b"a", b"b", b"c"])
    assert flight.kinds == [SEND, SEND, SEND._replace(tenant="bob")]
    assert 0 < worker.leases[0] <= SIZES.worker
    assert tailer.functions["send"].priority == Priority.USER_VISIBLE


async def test_ends_travel_whole(place: Place) -> None:
    ends = {
        "r": Ended(Outcome.RETRY, "boom", after=3.0, progress="half"),
        "f": Ended(Outcome.FATAL, "no"),
        "s": Ended(Outcome.SUCCESS, result=b"42"),
        "l": Ended(Outcome.LOST, "killed", crashed=True),
        "h": Ended(Outcome.HELD, "drained"),
    }
    await place.worker("send", answer=lambda flight, index: ends[flight.ids[index]])
    tailer = await place.tailer("send")
    refs = tailer.push(*[SEND] * len(ends), ids=list(ends))
    assert await tailer.ended(refs) == list(ends.values())


async def test_suspects_and_headers_travel(place: Place) -> None:
    worker = await place.worker("send")
    tailer = await place.tailer("send")
    extra = Extra(key="k", headers=(("h", "v"),), crashes=2, alone=True, progress="p")
    await tailer.ended(tailer.push(SEND, SEND, extras={1: extra}))
    assert worker.extras == [extra]


async def test_an_item_past_its_expiry_ends_as_expired(place: Place) -> None:
    worker = await place.worker("send")
    tailer = await place.tailer("send")
    (ended,) = await tailer.ended(tailer.push(SEND, extras={0: Extra(expires_at=1.0)}))
    assert ended is not None and ended.outcome == Outcome.EXPIRED and not worker.flights


async def test_cancel_reaches_waiting_and_running_items(place: Place) -> None:
    worker = await place.worker("send", limit=1, hold=True)
    tailer = await place.tailer("send")
    running, waiting = tailer.push(SEND, SEND)
    await worker.until(lambda: worker.open)
    tailer.cancel = [running, waiting]
    tailer.dialer.notify()
    ends = await tailer.ended([running, waiting])
    assert [end.outcome for end in ends if end] == [Outcome.CANCELLED] * 2
    assert len(worker.cancelled) == 1


async def test_leases_are_renewed_by_group_and_unlisted_flights_are_revoked(place: Place) -> None:
    worker = await place.worker("send", hold=True)
    tailer = await place.tailer("send")
    tailer.push(SEND)
    tailer.push(SEND)
    await worker.until(lambda: len(worker.open) == 2)
    worker.ask()
    await worker.until(lambda: worker.grants[-1].groups)
    assert worker.grants[-1].groups[0].group == worker.groups[1]
    assert 0 < worker.grants[-1].groups[0].lease <= SIZES.worker
    del tailer.open[1]
    await worker.until(lambda: worker.cancelled)
    assert worker.cancelled == [ref(1, 0)]
    assert ref(1, 0) not in tailer.ends
