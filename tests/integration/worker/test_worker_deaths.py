"""Processes that die: a run in one is a suspect, an item that waited is handed back, and nobody else is harmed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.exposition import prometheus_text
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Extra, Flight, Kind
from tailrace.runtime.config import WorkerConfig
from tailrace.runtime.loader import load_functions
from tailrace.runtime.supervisor import Supervisor


@pytest.mark.parametrize(("how", "cause"), [("exit", "exited with code 3"), ("SIGSEGV", "killed by SIGSEGV")])
async def test_what_ran_when_its_process_died_is_a_suspect(start: Any, journal: Any, how: str, cause: str) -> None:
    scheduler, worker = await start(slots=2)
    waiting = {"journal": journal.name, "name": "n"}
    neighbour = scheduler.assign("waits", waiting)
    await journal.until("start n")
    killer, buffered = scheduler.assign("dies", {"how": how}), scheduler.assign("add", {"a": 1})
    blocked = scheduler.assign("waits", *[waiting] * 3)
    dead, other, *held = await scheduler.ended(*killer, *neighbour, *blocked)
    assert (dead.outcome, dead.crashed) == (Outcome.LOST, True)
    assert cause in dead.reason
    assert dead.progress == "about to die"
    assert (other.outcome, other.crashed) == (Outcome.LOST, True)
    assert {end.outcome for end in held} == {Outcome.HELD}
    assert (await scheduler.ended(*buffered))[0].outcome in (Outcome.HELD, Outcome.SUCCESS)
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"
    # And its numbers say so
    text = prometheus_text(await worker.samples()).splitlines()
    assert 'tailrace_worker_ended_total{outcome="lost"} 2' in text
    assert 'tailrace_worker_deaths_total{pool="default"} 1' in text
    assert "tailrace_worker_sessions 1" in text


@pytest.mark.parametrize("alone", [False, True])
async def test_what_ended_is_a_suspect_until_its_end_is_told(start: Any, alone: bool) -> None:
    """An item that is handed back as if it had never started would end one process after another, for ever."""
    scheduler, _ = await start()
    killer = scheduler.assign("ends_and_dies", {}, extras={0: Extra(alone=alone)})
    (end,) = await scheduler.ended(*killer)
    assert (end.outcome, end.crashed) == (Outcome.LOST, True)
    assert "exited with code 3" in end.reason


async def test_suspects_run_alone_and_their_death_harms_nobody(start: Any, journal: Any) -> None:
    scheduler, _ = await start()
    neighbour = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    flight = [{"how": "exit"}, {"how": "SIGKILL"}]
    killers = scheduler.assign("dies", *flight, extras={0: Extra(alone=True), 1: Extra(alone=True)})
    innocent = scheduler.assign("pid", {}, {}, {}, extras={1: Extra(alone=True, crashes=1)})
    for end in await scheduler.ended(*killers):
        assert (end.outcome, end.crashed) == (Outcome.LOST, True)
        assert "others running" not in end.reason
    shared, alone, again = await scheduler.ended(*innocent)
    assert shared.result == again.result != alone.result
    journal.go()
    assert (await scheduler.ended(*neighbour))[0].outcome == Outcome.SUCCESS


async def test_many_suspects_follow_each_other_in_warm_processes(start: Any) -> None:
    scheduler, _ = await start(suspects=2)
    # Given the suspects of a crash, one of which is what ended the process
    suspects: list[dict[str, Any]] = [{}] * 6
    alone = {index: Extra(alone=True, crashes=1) for index in range(6)}
    refs = scheduler.assign("pid", *suspects, extras=alone)
    killer = scheduler.assign("dies", {"how": "exit"}, extras={0: Extra(alone=True, crashes=1)})
    refs += scheduler.assign("pid", *suspects, extras=alone)
    # Then it alone is lost, and the innocents shared a few processes
    assert [end.outcome for end in await scheduler.ended(*killer)] == [Outcome.LOST]
    pids = [end.result for end in await scheduler.ended(*refs)]
    assert len(set(pids)) <= 4


async def test_a_killed_executor_is_replaced_and_its_items_are_suspects(start: Any, journal: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    os.kill(int((await scheduler.ended(*scheduler.assign("pid", {})))[0].result), signal.SIGKILL)
    (end,) = await scheduler.ended(*refs)
    assert (end.outcome, end.crashed) == (Outcome.LOST, True)
    assert "killed by SIGKILL" in end.reason
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"


async def test_pools_have_processes_of_their_own(start: Any) -> None:
    scheduler, _ = await start(pools=True, max_runs=2)
    refs = (
        scheduler.assign("pid", {})
        + scheduler.assign("pid_special", {})
        + scheduler.assign("pid_alone", {}, {}, {}, {})
    )
    results = [end.result for end in await scheduler.ended(*refs)]
    assert len(set(results[:3])) == 3
    assert len(set(results[2:])) == 2  # replaced after two runs


async def test_a_function_this_worker_does_not_have_is_handed_back(start: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("unheard_of", {}) + scheduler.assign("add", {"a": 1})
    assert [end.outcome for end in await scheduler.ended(*refs)] == [Outcome.HELD, Outcome.SUCCESS]


async def test_last_words_are_read_although_writing_failed_first(tmp_path: Path) -> None:
    """Given a process that reported and died, when a write to it fails first, then its report still counts."""
    source = tmp_path / "last_words.py"
    source.write_text(
        "import os\nfrom tailrace.sdk.function import function\n"
        "@function\nasync def done(): ...\n"
        "@function\nasync def leave():\n    import asyncio\n    await asyncio.sleep(0.05)\n    os._exit(0)\n"
    )
    ends: dict[int, Any] = {}
    all_ended = asyncio.Event()

    def ended(succeeded: list[int], others: dict[int, Any]) -> None:
        ends.update(dict.fromkeys(succeeded, "success"))
        ends.update(others)
        if len(ends) == 2:
            all_ended.set()

    supervisor = Supervisor(
        WorkerConfig(executors=1),
        load_functions([str(source)]),
        {"default": ["done", "leave"]},
        earliest=lambda keys: time.monotonic() + 60,
        ended=ended,
        notes=lambda notes: None,
        waits=lambda waits, goes_on: None,
        limits=lambda: None,
    )
    await supervisor.start()
    try:
        (pid,) = supervisor.pids()
        flight = Flight(1, 0, [Kind("done"), Kind("leave")], ["a", "b"], [b"", b""], [1, 1])
        supervisor.assign(1, flight, [1, 1], "default")
        await asyncio.sleep(0)  # the assignment leaves
        with contextlib.suppress(ChildProcessError):  # reaped already, by the supervisor's thread
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - this loop must stand still: nothing is read
        supervisor.release()  # writes to it
        supervisor.set_timers()
        await all_ended.wait()
    finally:
        await supervisor.stop()
    first, second = sorted(ends)
    assert ends[first] == "success"
    assert ends[second].crashed
