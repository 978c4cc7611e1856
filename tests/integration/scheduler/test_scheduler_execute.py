"""Calls that wait for the outcome: `execute` answers with it, refuses functions that cannot run, and cancels when given
up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from scenes.scheduler_place import Place

from tailrace.model.errors import InvalidPayload, Unavailable, UnknownFunction
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.outcome import Outcome
from tailrace.model.priority import Priority
from tailrace.model.workload import Ended


async def test_execute_answers_with_the_outcome(place: Place) -> None:
    ends = {"ok": Ended(Outcome.SUCCESS, result=b"1"), "no": Ended(Outcome.RETRY, "boom", after=2.0)}
    worker = await place.worker("send", answer=lambda flight, index: ends.get(flight.ids[index]))
    assert await place.client.execute("send", b"{}", id="ok", headers=(("h", "v"),), timeout=10) == ends["ok"]
    assert await place.client.execute("send", id="no", timeout=10) == ends["no"]
    assert await place.client.execute("send", timeout=10) == Ended(Outcome.SUCCESS)
    assert worker.extras[0].headers == (("h", "v"),)
    assert next(iter(worker.flights.values())).kinds[0].priority == Priority.USER_VISIBLE


async def test_a_call_goes_to_the_version_that_takes_its_payload(place: Place) -> None:
    # Given two versions of a function, of which one takes no such payload
    misfit = Ended(Outcome.FATAL, "send: argument 'to' is missing", misfit=True)
    takes = Ended(Outcome.SUCCESS, result=b"1")
    old = await place.worker("send", version="old", answer=lambda flight, index: misfit)
    new = await place.worker("send", version="new", answer=lambda flight, index: takes)
    # When it is called often enough to meet both, then each call is answered by the other one
    for _ in range(8):
        assert await place.client.execute("send", b"{}", timeout=10) == takes
    # And what no version takes is fatal, for the one reason that all have
    new.answer = lambda flight, index: misfit
    end = await place.client.execute("send", b"{}", timeout=10)
    assert (end.outcome, end.reason) == (Outcome.FATAL, f"{misfit.reason} (all 2 attached versions refuse it)")
    assert old.flights and new.flights


async def test_execute_refuses_what_cannot_run(place: Place) -> None:
    with pytest.raises(UnknownFunction, match="nobody"):
        await place.client.execute("nobody", timeout=10)
    await place.worker("send")
    with pytest.raises(InvalidPayload, match="4194305"):
        await place.client.execute("send", bytes((4 << 20) + 1), timeout=10)


async def test_execute_of_a_registered_function_waits_for_a_worker_until_its_deadline(place: Place) -> None:
    place.server._apply(SimpleNamespace(gates=[], quotas=[], functions=[FunctionSpec("send")], version=1))
    with pytest.raises(Unavailable):
        await place.client.execute("send", timeout=0.2)
    call = asyncio.create_task(place.client.execute("send", timeout=20))
    await place.worker("send")
    assert await call == Ended(Outcome.SUCCESS)


async def test_a_call_given_up_cancels_the_workload(place: Place) -> None:
    worker = await place.worker("send", hold=True)
    call = asyncio.create_task(place.client.execute("send", id="x"))
    await worker.until(lambda: worker.open)
    explained = await place.client.explain("x")
    assert (explained.state, explained.reason, explained.worker) == ("running", "running", "worker")
    call.cancel()
    await worker.until(lambda: worker.cancelled)
    async with asyncio.timeout(20):  # the worker's answer is on its way
        while (await place.client.explain("x")).known:
            pass
