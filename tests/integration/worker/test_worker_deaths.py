"""Processes that die, leases that end, connections that break, workers that drain: what is lost, held or suspected."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.runtime.config import WorkerConfig
from tailrace.runtime.loader import load_functions
from tailrace.runtime.supervisor import Supervisor
from tailrace.runtime.worker import Worker
from tailrace.sdk.model.errors import UserError
from tailrace.sdk.model.lease import LeaseSizes
from tailrace.sdk.model.metrics import prometheus_text
from tailrace.sdk.model.outcome import Outcome
from tailrace.sdk.model.workload import Extra, Flight, Kind


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


SUSPECT = {0: Extra(alone=True, crashes=1)}


@pytest.mark.parametrize("piece", [1 << 20, 40])
@pytest.mark.parametrize("function", ["hoards", "hoards_on_the_loop"])
async def test_what_wants_more_than_its_bound_in_quarantine_fails_and_nobody_else_does(
    start: Any, journal: Any, function: str, piece: int
) -> None:
    """Given a suspect that allocates without end, in large pieces or in millions of small ones."""
    scheduler, worker = await start(quarantine_memory="64MiB", suspects=1)
    before = set(worker.executor_pids)
    neighbour = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    hoarder = scheduler.assign(function, {"pieces": 1 << 40, "piece": piece}, extras=SUSPECT)
    follower = scheduler.assign(function, {"pieces": 40}, extras=SUSPECT)
    # When the kernel refuses, then it ends as a failure that names the bound, or dies of it as a suspect
    (end,) = await scheduler.ended(*hoarder)
    if end.outcome == Outcome.RETRY:
        assert end.reason.startswith("out of memory, it may have 64 MiB (quarantine_memory): MemoryError")
    else:
        assert (end.outcome, end.crashed) == (Outcome.LOST, True)
        assert "it may allocate 64 MiB" in end.reason
    assert piece == 40 or end.outcome == Outcome.RETRY
    # And what follows has the whole bound again, and the neighbour never noticed
    (after,) = await scheduler.ended(*follower)
    assert after.outcome == Outcome.HELD or after.result == b"40"
    journal.go()
    assert (await scheduler.ended(*neighbour))[0].outcome == Outcome.SUCCESS
    assert before <= set(worker.executor_pids)


async def test_ordinary_executors_are_not_bound_unless_their_pool_is(start: Any) -> None:
    scheduler, _ = await start(quarantine_memory="64MiB")
    (end,) = await scheduler.ended(*scheduler.assign("hoards", {"pieces": 128}))
    assert end.result == b"128"


async def test_a_pool_may_be_bound(start: Any) -> None:
    scheduler, _ = await start(memory={"default": "64MiB"})
    (end,) = await scheduler.ended(*scheduler.assign("hoards", {"pieces": 128}))
    assert end.outcome == Outcome.RETRY
    assert "64 MiB (memory of pool 'default')" in end.reason


async def test_a_bound_for_a_pool_that_is_not_there_fails_the_start(start: Any) -> None:
    with pytest.raises(UserError, match="no pool 'defualt'; expected one of default, isolated, special"):
        await start(pools=True, memory={"defualt": 1})


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSEGV"])
async def test_a_death_alone_tells_its_signal_age_memory_and_the_very_last_note(start: Any, how: str) -> None:
    scheduler, _ = await start(quarantine_memory="512MiB")
    # Given a suspect that dies at once after its last note, holding 128 MiB
    (end,) = await scheduler.ended(*scheduler.assign("hoards", {"pieces": 128, "how": how}, extras=SUSPECT))
    assert (end.outcome, end.crashed, end.progress) == (Outcome.LOST, True, "128 pieces")
    told = re.fullmatch(
        rf"the process was killed by {how} after it ran (\S+) s, at (most )?(\d+) MiB of memory "
        r"\(it may allocate 512 MiB\); last note: 128 pieces",
        end.reason,
    )
    assert told, end.reason
    assert float(told[1]) < 30
    # (what it is at most may be the memory of this process, from which it was started)
    assert int(told[3]) >= 128 and (told[2] or int(told[3]) < 512)


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


async def test_a_connection_that_heals_restarts_nothing(start: Any, journal: Any) -> None:
    scheduler, _ = await start()
    running = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    scheduler.cut()
    await scheduler.until(lambda: scheduler.resumed == 1)
    more = scheduler.assign("add", {"a": 1})
    journal.go()
    assert [end.outcome for end in await scheduler.ended(*running, *more)] == [Outcome.SUCCESS, Outcome.SUCCESS]
    assert journal.lines().count("start n") == 1


async def test_a_session_that_the_scheduler_forgot_is_stopped_and_a_new_one_begins(start: Any, journal: Any) -> None:
    scheduler, worker = await start()
    forgotten = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    scheduler.knows_session = False
    scheduler.cut()
    await scheduler.until(lambda: len(scheduler.hellos) == 2)
    await journal.until("cancelled n")
    await worker.attached()
    fresh = scheduler.assign("add", {"a": 1}, request=0)
    assert (await scheduler.ended(*fresh))[0].outcome == Outcome.SUCCESS
    assert not (set(forgotten) - set(fresh)) & set(scheduler.ends)


async def test_a_scheduler_that_was_replaced_stops_what_it_gave_and_nothing_else(start: Any, journal: Any) -> None:
    # Given a worker of two schedulers, each of which gave it something
    former, worker = await start(schedulers=2)
    other = former.others[0]
    former.assign("waits", {"journal": journal.name, "name": "former"})
    kept = other.assign("waits", {"journal": journal.name, "name": "other"})
    await journal.until("start former")
    await journal.until("start other")
    # When another process takes the place of one, which knows no session
    ran = set(former.ends)
    former.knows_session = False
    await former.stop()
    await former.start()
    # Then what it gave is stopped and never reported to the new one; the rest goes on
    await journal.until("cancelled former")
    await worker.attached()
    fresh = former.assign("add", {"a": 1}, request=0)
    assert (await former.ended(*fresh))[0].outcome == Outcome.SUCCESS
    assert set(former.ends) - ran == set(fresh)
    assert "cancelled other" not in journal.lines()
    journal.go()
    assert (await other.ended(*kept))[0].outcome == Outcome.SUCCESS


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


async def test_the_kernel_ends_what_does_not_stop_by_itself(start: Any, journal: Any) -> None:
    scheduler, worker = await start(heartbeat=0.3)
    before = worker.executor_pids
    refs = scheduler.assign("blocks", {"journal": journal.name})
    await journal.until("blocking")
    granting, scheduler.granting = scheduler.granting, None
    (end,) = await scheduler.ended(*refs)
    assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert "lease was over" in end.reason
    scheduler.granting = granting  # the new executor may take longer than one lease to start
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"
    assert worker.executor_pids != before


async def test_an_executor_frozen_past_its_lease_dies_on_waking_before_it_writes(start: Any, journal: Any) -> None:
    scheduler, _ = await start(heartbeat=0.3)
    pid = int((await scheduler.ended(*scheduler.assign("pid", {})))[0].result)
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    os.kill(pid, signal.SIGSTOP)
    scheduler.granting = None
    requests = scheduler.requests
    await scheduler.until(lambda: scheduler.requests > requests + 6)
    journal.go()
    os.kill(pid, signal.SIGCONT)
    (end,) = await scheduler.ended(*refs)
    assert end.outcome == Outcome.LOST
    assert journal.lines() == ["start n"]


async def test_an_assignment_whose_lease_is_over_does_not_start(start: Any) -> None:
    scheduler, _ = await start()
    late = scheduler.assign("add", {"a": 1}, lease=0.0)
    unknown = scheduler.assign("add", {"a": 1}, request=99)
    assert {end.outcome for end in await scheduler.ended(*late, *unknown)} == {Outcome.HELD}


async def test_a_function_this_worker_does_not_have_is_handed_back(start: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("unheard_of", {}) + scheduler.assign("add", {"a": 1})
    assert [end.outcome for end in await scheduler.ended(*refs)] == [Outcome.HELD, Outcome.SUCCESS]


async def test_draining_finishes_what_runs_and_hands_back_what_waits(start: Any, journal: Any) -> None:
    scheduler, worker = await start(slots=2)
    running = scheduler.assign("waits", *[{"journal": journal.name, "name": "n"}] * 2)
    await journal.until("start n", 2)
    buffered = scheduler.assign("add", *[{"a": 1}] * 5)
    late = scheduler.assign("add", {"a": 1})
    drain = asyncio.create_task(worker.drain(20))
    assert {end.outcome for end in await scheduler.ended(*buffered, *late)} == {Outcome.HELD}
    assert scheduler.draining
    journal.go()
    assert {end.outcome for end in await scheduler.ended(*running)} == {Outcome.SUCCESS}
    await drain
    assert not worker.executor_pids


async def test_what_runs_on_after_the_grace_is_lost_without_an_attempt(start: Any, journal: Any) -> None:
    scheduler, worker = await start(pools=True)
    arguments = {"journal": journal.name, "name": "n"}
    refs = scheduler.assign("waits", arguments) + scheduler.assign("waits_plain", arguments)
    stuck = scheduler.assign("stuck_alone", {"journal": journal.name})
    await asyncio.gather(journal.until("start n", 2), journal.until("start"))
    await worker.drain(0.1)
    for end in await scheduler.ended(*refs[:1], *stuck):
        assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert not worker.executor_pids


async def test_executors_do_not_outlive_their_worker(start: Any) -> None:
    _, worker = await start()
    pids = worker.executor_pids
    await worker.stop()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


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


async def test_functions_that_cannot_be_loaded_in_an_executor_fail_the_start(tmp_path: Path) -> None:
    source = tmp_path / "only_here.py"
    source.write_text(
        "import os\nfrom tailrace.sdk.function import function\n"
        f"if os.getpid() != {os.getpid()}: os._exit(9)\n"
        "@function\nasync def work(): ...\n"
    )
    worker = Worker(WorkerConfig(executors=1), [str(source)], ["127.0.0.1:1"], None, LeaseSizes())
    with pytest.raises(UserError, match="exited with code 9 while it loaded"):
        await worker.start()
    await worker.stop()


async def test_functions_that_never_finish_loading_fail_the_start(tmp_path: Path) -> None:
    """Given a module whose import hangs in the executor, When the worker starts, Then it says so after the limit."""
    source = tmp_path / "hangs_here.py"
    source.write_text(
        "import os, threading\nfrom tailrace.sdk.function import function\n"
        f"if os.getpid() != {os.getpid()}: threading.Event().wait()\n"
        "@function\nasync def work(): ...\n"
    )
    worker = Worker(WorkerConfig(executors=1, load_limit=1.0), [str(source)], ["127.0.0.1:1"], None, LeaseSizes())
    with pytest.raises(UserError, match=r"did not load within 1 s.*load_limit"):
        await worker.start()
    await worker.stop()
