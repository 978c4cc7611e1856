"""Children of functions end with their executor, at the latest when the lease does, though other processes are dead or
frozen."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly.processes import Child
from tailrace.bench.process import runs
from tailrace.model.lease import wait_for_worker
from tailrace.model.outcome import Outcome
from tailrace.runtime import guard_handle
from tailrace.runtime.process_table import NO_MARKS, listed

from .conftest import HEARTBEAT, SIZES, FakeScheduler, Ticks

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells who was started")

#: Every way that functions start programs, and what can be found of it.
WAYS = [
    "child",
    "child without environment",
    "child in a session",
    "orphan",
    "orphan in a session",
    "fork",
]
#: Where a test waits for a lease to end, what a way shows of two that differ by less is long.
WAITED_FOR = [
    pytest.param(way, marks=pytest.mark.long(minutes=0.08) if way in ("child", "child in a session", "orphan") else ())
    for way in WAYS
]


async def executor_of(scheduler: FakeScheduler) -> int:
    return int((await scheduler.ended(*scheduler.assign("pid", {})))[0].result or b"")


async def _ends_while_frozen(worker: Child, ticks: Ticks) -> None:
    """Stops the supervisor until nothing ticks, which is before the scheduler's wait for it is over."""
    os.kill(worker.pid, signal.SIGSTOP)
    others_begin = time.time() + wait_for_worker(SIZES, SIZES.worker)
    try:
        await ticks.over()
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    assert ticks.all()[-1] < others_begin


@pytest.mark.parametrize("how", WAITED_FOR)
async def test_what_a_function_started_ends_with_its_lease_although_its_supervisor_is_frozen(
    apart: Any, journal: Any, ticks: Ticks, how: str
) -> None:
    scheduler, worker = await apart()
    scheduler.assign("starts", {"journal": journal.name, "how": how})
    await ticks.begun()
    # When the supervisor stands still, then nothing of the old run does anything once others may have the item
    await _ends_while_frozen(worker, ticks)


async def test_a_function_that_became_another_program_ends_with_its_lease(
    apart: Any, journal: Any, ticks: Ticks
) -> None:
    scheduler, worker = await apart()
    scheduler.assign("becomes", {"journal": journal.name})
    await ticks.begun()
    await _ends_while_frozen(worker, ticks)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("killed", ["supervisor", "supervisor and executor", "guard"])
async def test_what_a_function_started_ends_at_once_with_its_worker(
    apart: Any, journal: Any, ticks: Ticks, how: str, killed: str
) -> None:
    scheduler, worker = await apart()
    executor = await executor_of(scheduler)
    scheduler.assign("starts", {"journal": journal.name, "how": how})
    await ticks.begun()
    victims = {
        "supervisor": [worker.pid],
        "supervisor and executor": [worker.pid, executor],
        "guard": [worker.process.pid],
    }[killed]
    at = time.time()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    await ticks.over()
    assert ticks.all()[-1] < at + 1.0
    # And of the worker itself nothing is left, which ends as its supervisor did
    async with asyncio.timeout(10):
        while runs(worker.pid) or runs(executor):
            await asyncio.sleep(0.01)
    assert await asyncio.to_thread(worker.process.wait, 10) == -signal.SIGKILL


@pytest.mark.parametrize("how", WAYS)
async def test_a_death_is_told_when_nothing_of_it_is_left(start: Any, journal: Any, ticks: Ticks, how: str) -> None:
    """A tailer that hears of the death hands the item out again."""
    scheduler, _ = await start(executors=1)
    executor = await executor_of(scheduler)
    refs = scheduler.assign("starts", {"journal": journal.name, "how": how})
    await ticks.begun()
    os.kill(executor, signal.SIGKILL)
    (end,) = await scheduler.ended(*refs)
    assert (end.outcome, end.crashed) == (Outcome.LOST, True)
    assert ticks.running() == []


@pytest.mark.parametrize("how", WAITED_FOR)
async def test_what_a_function_left_when_it_was_told_to_end_does_not_outlive_its_lease(
    start: Any, journal: Any, ticks: Ticks, how: str
) -> None:
    scheduler, _ = await start(heartbeat=HEARTBEAT)
    refs = scheduler.assign("starts", {"journal": journal.name, "how": how})
    await ticks.begun()
    # Given a lease that is not renewed, when the function is told to end and leaves what it started
    scheduler.granting = None
    others_begin = time.time() + wait_for_worker(SIZES, SIZES.worker)
    (end,) = await scheduler.ended(*refs)
    assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    await ticks.over()
    assert ticks.all()[-1] < others_begin


async def test_what_goes_on_after_its_function_returned_ends_with_the_executor(
    start: Any, journal: Any, ticks: Ticks
) -> None:
    scheduler, worker = await start()
    (end,) = await scheduler.ended(
        *scheduler.assign("starts", {"journal": journal.name, "how": "orphan in a session", "returns": True})
    )
    assert end.outcome == Outcome.SUCCESS
    await ticks.begun()
    assert ticks.running()
    await worker.drain(5.0)
    assert ticks.running() == []


async def _another_guard(former: int) -> list[int]:
    async with asyncio.timeout(30):
        while not (now := _guards()) or now == [former]:
            await asyncio.sleep(0.02)
    return now


async def test_a_worker_inside_another_program_gets_another_guard_and_other_executors(
    start: Any, journal: Any, ticks: Ticks
) -> None:
    scheduler, _ = await start()
    before = await executor_of(scheduler)
    refs = scheduler.assign("starts", {"journal": journal.name, "how": "orphan in a session"})
    await ticks.begun()
    (guard,) = _guards()
    os.kill(guard, signal.SIGKILL)
    # Then what ran is lost by nobody's fault, and the next one runs elsewhere
    (end,) = await scheduler.ended(*refs)
    assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert "guard" in end.reason
    assert ticks.running() == []
    assert await executor_of(scheduler) != before
    assert guard not in await _another_guard(guard)


async def test_a_guard_that_cannot_be_started_again_is_tried_until_it_can(
    start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await start()
    (guard,) = _guards()
    failing, real = [["/nowhere/to/be/found"]] * 2, guard_handle._command
    monkeypatch.setattr(guard_handle, "_command", lambda *facts: failing.pop() if failing else real(*facts))
    os.kill(guard, signal.SIGKILL)
    await _another_guard(guard)
    assert caplog.text.count("will be tried once more") == 2


async def test_a_worker_ends_as_it_is_told_although_its_guard_is_told(apart: Any, journal: Any) -> None:
    scheduler, worker = await apart()
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    # Given a run that goes on, when whoever started the worker tells it to end, then it ends what it has and drains
    worker.process.send_signal(signal.SIGTERM)
    await scheduler.until(lambda: scheduler.draining)
    journal.go()
    assert (await scheduler.ended(*refs))[0].outcome == Outcome.SUCCESS
    assert await asyncio.to_thread(worker.process.wait, 20) == 0


async def test_a_signal_to_everything_at_once_counts_once(apart: Any, journal: Any) -> None:
    """A service manager, or a terminal, sends the signal to all processes."""
    scheduler, worker = await apart()
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    os.killpg(worker.process.pid, signal.SIGTERM)
    await scheduler.until(lambda: scheduler.draining)
    journal.go()
    assert (await scheduler.ended(*refs))[0].outcome == Outcome.SUCCESS
    assert await asyncio.to_thread(worker.process.wait, 20) == 0


async def test_a_guard_is_not_named_like_what_it_guards(apart: Any) -> None:
    _, worker = await apart()
    guard = Path(f"/proc/{worker.process.pid}")
    assert (guard / "comm").read_text() == "lease-guard\n"
    assert b"tailrace" not in (guard / "cmdline").read_bytes()


def _guards() -> list[int]:
    """Guards that are children of this process."""
    mine = [process.pid for process in listed(NO_MARKS) if process.parent == os.getpid() and not process.dead]
    return [pid for pid in mine if _name_of(pid) == "lease-guard"]


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # one that could not become what it was started as
        return ""
