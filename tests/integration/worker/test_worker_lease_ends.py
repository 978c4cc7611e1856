"""Leases that end: a run that is not renewed is stopped before its lease is over, if need be by the kernel."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

import pytest

from tailrace.model.outcome import Outcome


async def test_items_whose_lease_is_not_renewed_are_stopped_before_it_ends(start: Any, journal: Any) -> None:
    scheduler, worker = await start(heartbeat=0.3)
    before = worker.executor_pids
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    scheduler.granting = None
    (end,) = await scheduler.ended(*refs)
    assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert "lease" in end.reason
    assert "cancelled n" in journal.lines()
    assert worker.executor_pids == before


async def test_a_renewed_lease_outlives_its_first_grant(start: Any, journal: Any) -> None:
    scheduler, worker = await start(heartbeat=0.2)
    before = worker.executor_pids
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    first = scheduler.requests
    await scheduler.until(lambda: scheduler.requests > first + 8)  # more than two whole leases
    journal.go()
    assert (await scheduler.ended(*refs))[0].outcome == Outcome.SUCCESS
    assert worker.executor_pids == before


async def test_a_revoked_item_keeps_its_deadline_while_its_group_lives_on(start: Any, journal: Any) -> None:
    scheduler, _ = await start(heartbeat=0.3)
    arguments = [{"journal": journal.name, "name": name} for name in "ab"]
    revoked, kept = scheduler.assign("waits", *arguments)
    await journal.until("start b")
    scheduler.revoked = [revoked]
    (end,) = await scheduler.ended(revoked)
    assert end.outcome == Outcome.LOST
    assert kept not in scheduler.ends
    journal.go()
    assert (await scheduler.ended(kept))[0].outcome == Outcome.SUCCESS


@pytest.mark.parametrize("function", ["blocks", "blocks_without_alarm"])
async def test_the_kernel_ends_what_does_not_stop_by_itself(start: Any, journal: Any, function: str) -> None:
    scheduler, worker = await start(heartbeat=0.3)
    before = worker.executor_pids
    # Given a function that blocks, and may have taken the alarm of its process away
    refs = scheduler.assign(function, {"journal": journal.name})
    await journal.until("blocking")
    granting, scheduler.granting = scheduler.granting, None
    (end,) = await scheduler.ended(*refs)
    assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert "lease was over" in end.reason
    scheduler.granting = granting  # the new executor may take longer than one lease to start
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"
    assert worker.executor_pids != before


async def test_a_functions_own_timeout_by_alarm_works_and_takes_no_lease_away(start: Any, journal: Any) -> None:
    scheduler, _ = await start(heartbeat=0.3)
    neighbour = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    # Given a time-out by SIGALRM beside a neighbour whose lease is watched over, when it rings, then it alone ends
    (end,) = await scheduler.ended(*scheduler.assign("has_a_timeout_of_its_own", {}))
    assert end.result == b'"its own"'
    assert neighbour[0] not in scheduler.ends
    # And who comes after it is ended at the end of its lease
    refs = scheduler.assign("blocks", {"journal": journal.name})
    await journal.until("blocking")
    scheduler.granting = None
    (end,) = await scheduler.ended(*refs)
    assert "lease was over" in end.reason


async def test_an_executor_frozen_past_its_lease_dies_before_it_writes(start: Any, journal: Any) -> None:
    scheduler, _ = await start(heartbeat=0.3)
    pid = int((await scheduler.ended(*scheduler.assign("pid", {})))[0].result)
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    os.kill(pid, signal.SIGSTOP)
    scheduler.granting = None
    requests = scheduler.requests
    await scheduler.until(lambda: scheduler.requests > requests + 6)
    journal.go()
    with contextlib.suppress(ProcessLookupError):  # its own timer ended it while it was frozen
        os.kill(pid, signal.SIGCONT)
    (end,) = await scheduler.ended(*refs)
    assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert journal.lines() == ["start n"]


async def test_an_assignment_whose_lease_is_over_does_not_start(start: Any) -> None:
    scheduler, _ = await start()
    late = scheduler.assign("add", {"a": 1}, lease=0.0)
    unknown = scheduler.assign("add", {"a": 1}, request=99)
    assert {end.outcome for end in await scheduler.ended(*late, *unknown)} == {Outcome.HELD}


@pytest.mark.parametrize("function", ["stops_itself", "keeps_the_lock"])
async def test_what_hears_of_no_renewal_by_its_own_doing_is_suspected_with_all_that_ran_beside_it(
    start: Any, journal: Any, function: str
) -> None:
    # Given a neighbour, and a function that stops its process, or keeps its lock, while its lease is renewed
    scheduler, worker = await start(heartbeat=0.4)
    before = worker.executor_pids
    neighbour = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    more = {"seconds": 30} if function == "keeps_the_lock" else {}
    refs = scheduler.assign(function, {"journal": journal.name, **more})
    # When the lease would be over, then both are suspects, since nobody can tell which of them did it
    for end in await scheduler.ended(*refs, *neighbour):
        assert (end.outcome, end.crashed) == (Outcome.LOST, True)
        assert "kept the interpreter lock, or stood still" in end.reason
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"
    assert worker.executor_pids != before


@pytest.mark.parametrize("function", ["stops_itself", "keeps_the_lock"])
async def test_a_lease_that_nobody_renews_is_nobodys_doing(start: Any, journal: Any, function: str) -> None:
    scheduler, _ = await start(heartbeat=0.4)
    scheduler.granting = None
    more = {"seconds": 30} if function == "keeps_the_lock" else {}
    (end,) = await scheduler.ended(*scheduler.assign(function, {"journal": journal.name, **more}))
    assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert "lease was over" in end.reason


async def test_the_lock_may_be_kept_for_less_than_a_lease(start: Any, journal: Any) -> None:
    scheduler, worker = await start(heartbeat=1.0)
    before = worker.executor_pids
    refs = scheduler.assign("keeps_the_lock", {"journal": journal.name, "seconds": 1})
    assert (await scheduler.ended(*refs))[0].outcome == Outcome.SUCCESS
    assert worker.executor_pids == before
