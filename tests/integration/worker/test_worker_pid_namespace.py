"""The option `pid_namespace`: the kernel ends what an executor started, however that hides; all else is as without
it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly.processes import Child
from tailrace.bench.process import runs
from tailrace.model.errors import UserError
from tailrace.model.lease import wait_for_worker
from tailrace.model.outcome import Outcome
from tailrace.runtime import bare_interpreter, pid_namespace_command
from tailrace.runtime.pid_namespace import NO_PROGRAM, REFUSED
from tailrace.runtime.process_table import NO_MARKS, listed

from .conftest import HEARTBEAT, SIZES, FakeScheduler, Ticks

NOBODY = 65_534


@pytest.fixture(scope="module", autouse=True)
def _system_has_them() -> None:
    """Skips the test where there are no namespaces, as util-linux finds too."""
    try:
        pid_namespace_command.check_supported()
    except UserError as error:
        for users in ([], ["--user", "--map-current-user"]):
            command = ["unshare", *users, "--pid", "--fork", "--mount-proc", "true"]
            if shutil.which("unshare") and not subprocess.run(command, capture_output=True, check=False).returncode:
                raise
        pytest.skip(str(error))


def children_of(pid: int) -> list[int]:
    return [each.pid for each in listed(NO_MARKS) if each.parent == pid and not each.dead]


def parts_of(launcher: int) -> dict[str, int]:
    """The processes of an executor in which nothing was started yet, by name."""
    (init,) = children_of(launcher)
    (executor,) = children_of(init)
    return {"launcher": launcher, "init": init, "executor": executor}


async def begins_to_hide(scheduler: FakeScheduler, journal: Any, ticks: Ticks) -> list[int]:
    """Has a function start a program that no list of processes shows to be its own: `env -i setsid`, its parent has
    ended."""
    refs = scheduler.assign("starts", {"journal": journal.name, "how": "hidden"})
    await ticks.begun()
    return refs


# -- what it is for ----------------------------------------------------------------------------------------------------


async def test_without_a_namespace_what_hides_goes_on(start: Any, journal: Any, ticks: Ticks) -> None:
    """The page docs/guarantees.md says so. When this fails, that is better, and the page is to be changed."""
    scheduler, worker = await start()
    refs = await begins_to_hide(scheduler, journal, ticks)
    os.kill(worker.executor_pids[0], signal.SIGKILL)
    await scheduler.ended(*refs)
    assert ticks.running()


@pytest.mark.parametrize("killed", ["launcher", "init", "executor"])
async def test_a_death_is_told_when_nothing_is_left_that_hides(
    start: Any, journal: Any, ticks: Ticks, killed: str
) -> None:
    scheduler, worker = await start(pid_namespace=True)
    parts = parts_of(worker.executor_pids[0])
    refs = await begins_to_hide(scheduler, journal, ticks)
    # Given a program that hides, when any process of its executor is killed, then it is gone when that is told
    os.kill(parts[killed], signal.SIGKILL)
    (end,) = await scheduler.ended(*refs)
    assert ticks.running() == []
    assert (end.outcome, end.crashed) == (Outcome.LOST, True)
    assert "killed by SIGKILL" in end.reason
    # And the worker goes on with another one
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"


async def test_what_hides_ends_with_its_lease_although_supervisor_and_guard_are_frozen(
    apart: Any, journal: Any, ticks: Ticks
) -> None:
    scheduler, worker = await apart(pid_namespace=True)
    await begins_to_hide(scheduler, journal, ticks)
    both = [worker.process.pid, worker.pid]
    for pid in both:
        os.kill(pid, signal.SIGSTOP)
    others_begin = time.time() + wait_for_worker(SIZES, SIZES.worker)
    try:
        await ticks.over()
    finally:
        for pid in both:
            os.kill(pid, signal.SIGCONT)
    assert ticks.all()[-1] < others_begin


@pytest.mark.parametrize("frozen", ["", "init", "executor"])
async def test_what_hides_ends_at_once_when_supervisor_and_guard_are_killed(
    apart: Any, journal: Any, ticks: Ticks, frozen: str
) -> None:
    """The executor, or the process that watches over it, may stand still meanwhile."""
    scheduler, worker = await apart(pid_namespace=True)
    parts = parts_of(launcher_of(worker))
    await begins_to_hide(scheduler, journal, ticks)
    if frozen:
        os.kill(parts[frozen], signal.SIGSTOP)
    at = time.time()
    for pid in (worker.process.pid, worker.pid):
        os.kill(pid, signal.SIGKILL)
    await ticks.over()
    assert ticks.all()[-1] < at + 1.0
    async with asyncio.timeout(10):
        while any(runs(pid) for pid in parts.values()):
            await asyncio.sleep(0.01)


async def test_what_hides_ends_with_an_init_that_is_frozen_at_the_end_of_its_lease(
    start: Any, journal: Any, ticks: Ticks
) -> None:
    """The guard ends what hides then."""
    scheduler, worker = await start(heartbeat=HEARTBEAT, pid_namespace=True)
    parts = parts_of(worker.executor_pids[0])
    refs = await begins_to_hide(scheduler, journal, ticks)
    os.kill(parts["init"], signal.SIGSTOP)
    scheduler.granting = None
    others_begin = time.time() + wait_for_worker(SIZES, SIZES.worker)
    (end,) = await scheduler.ended(*refs)
    await ticks.over()
    assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert ticks.all()[-1] < others_begin


async def test_an_executor_stays_when_nothing_goes_on_beyond_a_lease(start: Any, journal: Any, ticks: Ticks) -> None:
    scheduler, worker = await start(heartbeat=0.3, pid_namespace=True)
    before = worker.executor_pids
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    granting, scheduler.granting = scheduler.granting, None
    (end,) = await scheduler.ended(*refs)
    assert end.outcome == Outcome.LOST
    # Given that its lease is over for sure, then neither its launcher nor its init counted as something left behind
    requests = scheduler.requests
    await scheduler.until(lambda: scheduler.requests > requests + 6)
    scheduler.granting = granting
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"
    assert worker.executor_pids == before


# -- what stays as it is -----------------------------------------------------------------------------------------------


async def test_a_function_stands_among_processes_as_without_one(start: Any) -> None:
    scheduler, _ = await start(pid_namespace=True)
    (end,) = await scheduler.ended(*scheduler.assign("stands", {}))
    here = json.loads(end.result or b"")
    assert here["pid"] == here["group"] == here["session"] == 2
    assert (here["own"], here["seen"]) == (True, [1, 2])
    assert here["blocked"] == []
    assert here["variables"] == []


async def test_orphans_that_have_ended_are_buried(start: Any) -> None:
    scheduler, _ = await start(pid_namespace=True)
    assert (await scheduler.ended(*scheduler.assign("leaves_orphans", {})))[0].outcome == Outcome.SUCCESS


@pytest.mark.parametrize(
    ("how", "cause"),
    [("exit", "exited with code 3"), ("SIGSEGV", "killed by SIGSEGV"), ("SIGKILL", "killed by SIGKILL")],
)
async def test_a_death_is_told_as_it_was(start: Any, how: str, cause: str) -> None:
    scheduler, _ = await start(pid_namespace=True)
    (end,) = await scheduler.ended(*scheduler.assign("dies", {"how": how}))
    assert (end.outcome, end.crashed) == (Outcome.LOST, True)
    assert cause in end.reason


@pytest.mark.parametrize("how", ["itself", "worker"])
async def test_a_death_tells_how_much_memory_there_was(start: Any, journal: Any, how: str) -> None:
    """The worker may end it, too: its launcher lives until it knows."""
    scheduler, worker = await start(pid_namespace=True)
    hoard = {"pieces": 300, "journal": journal.name}
    if how == "itself":
        refs = scheduler.assign("hoards", hoard | {"how": "SIGKILL"})
    else:
        refs = scheduler.assign("hoards", hoard) + scheduler.assign("waits", {"journal": journal.name})
        await journal.until("kept all")
        for executor in worker._supervisor.all_pools()[0].executors:
            executor.kill_unexplained()
    end = (await scheduler.ended(*refs))[-1]
    found = re.search(r"killed by SIGKILL .*, at (?:most )?([\d.]+) ([MG])iB of memory", end.reason)
    assert found, end.reason
    assert float(found[1]) * {"M": 1, "G": 1024}[found[2]] > 300


async def test_one_that_stops_itself_is_a_suspect(start: Any, journal: Any) -> None:
    scheduler, _ = await start(heartbeat=0.4, pid_namespace=True)
    (end,) = await scheduler.ended(*scheduler.assign("stops_itself", {"journal": journal.name}))
    assert (end.outcome, end.crashed) == (Outcome.LOST, True)
    assert "kept the interpreter lock, or stood still" in end.reason


async def test_a_bound_on_memory_is_kept(start: Any) -> None:
    scheduler, _ = await start(pid_namespace=True, memory={"default": 64 << 20})
    (end,) = await scheduler.ended(*scheduler.assign("hoards_on_the_loop", {"pieces": 300}))
    assert end.reason.startswith("out of memory, it may have 64 MiB (memory of pool 'default'): MemoryError")


async def test_a_function_with_a_process_of_its_own_is_stopped_with_it(start: Any, journal: Any) -> None:
    scheduler, _ = await start(pools=True, pid_namespace=True)
    refs = scheduler.assign("stuck_alone", {"journal": journal.name})
    await journal.until("start")
    scheduler.cancel(*refs)
    assert (await scheduler.ended(*refs))[0].outcome == Outcome.CANCELLED
    assert (await scheduler.ended(*scheduler.assign("pid_alone", {})))[0].result == b"2"


async def test_a_timeout_that_is_ignored_ends_the_process(start: Any) -> None:
    scheduler, worker = await start(pid_namespace=True, timeout_grace=0.2)
    before = worker.executor_pids
    (end,) = await scheduler.ended(*scheduler.assign("ignores_its_timeout", {}))
    assert (end.outcome, end.crashed) == (Outcome.RETRY, False)
    assert end.reason == "timed out after 200ms"
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"
    assert worker.executor_pids != before


async def test_a_signal_to_everything_at_once_lets_runs_end(apart: Any, journal: Any) -> None:
    """A service manager sends the signal to all processes of a unit."""
    scheduler, worker = await apart(pid_namespace=True)
    parts = parts_of(launcher_of(worker))
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    for pid in [*parts.values(), worker.pid, worker.process.pid]:
        os.kill(pid, signal.SIGTERM)
    await scheduler.until(lambda: scheduler.draining)
    journal.go()
    assert (await scheduler.ended(*refs))[0].outcome == Outcome.SUCCESS
    assert await asyncio.to_thread(worker.process.wait, 20) == 0
    assert not [pid for pid in parts.values() if Path(f"/proc/{pid}").exists()]


# -- where it is not to be had -----------------------------------------------------------------------------------------


async def test_a_system_without_them_refuses_the_start(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = [sys.executable, "-c", f"import sys; sys.stderr.write('a namespace: no'); sys.exit({REFUSED})"]
    monkeypatch.setattr(pid_namespace_command, "inside", lambda program: refused)
    with pytest.raises(UserError, match=r"gives the worker none \(a namespace: no\).*CAP_SYS_ADMIN.*leave"):
        await start(pid_namespace=True)


async def test_another_system_refuses_the_start(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="only Linux"):
        pid_namespace_command.check_supported()


#: Becomes somebody else when all is loaded; whoever was somebody else from the start may look into itself.
BECOMES = f"""import ctypes, os
libc = ctypes.CDLL(None)
{{before}}
os.setgroups([])
os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
libc.prctl(4, 1, 0, 0, 0)
main()"""


def run_as_nobody(before: str, *program: str) -> subprocess.CompletedProcess[str]:
    command = pid_namespace_command.inside([*program])
    code = command.index("-c") + 1
    command[code] = command[code].replace("main()", BECOMES.format(before=before))
    return subprocess.run(
        command, env=bare_interpreter.environment(), capture_output=True, text=True, timeout=20, check=False
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_who_is_not_root_gets_one_with_a_user_namespace() -> None:
    ran = run_as_nobody("", "/bin/sh", "-c", "echo $$ $(id -u) $(id -g) $(ls -d /proc/[0-9]*)")
    if ran.returncode == REFUSED:
        pytest.skip(f"user namespaces are not for all here: {ran.stderr}")
    assert (ran.stdout.split()[:3], ran.returncode) == (["2", str(NOBODY), str(NOBODY)], 0), ran.stderr
    assert ran.stdout.split()[3:5] == ["/proc/1", "/proc/2"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root")
def test_somebody_whom_the_system_gives_none_says_so(tmp_path: Path) -> None:
    """A changed root has no user namespaces."""
    ran = run_as_nobody(f"os.chroot({str(tmp_path)!r})", "/bin/true")
    assert (ran.stderr, ran.returncode) == ("a namespace cannot be made: Operation not permitted\n", REFUSED)


def test_a_program_that_is_not_there_is_said() -> None:
    command = pid_namespace_command.inside(["/nowhere/to/be/found"])
    ran = subprocess.run(
        command, env=bare_interpreter.environment(), capture_output=True, text=True, timeout=20, check=False
    )
    assert ran.returncode == NO_PROGRAM
    assert ran.stderr == "/nowhere/to/be/found cannot be started: No such file or directory\n"


def test_a_launcher_whose_supervisor_has_gone_starts_nothing() -> None:
    command = pid_namespace_command.inside(["/bin/echo", "started"])
    command[command.index(str(os.getpid()))] = "1"
    ran = subprocess.run(
        command, env=bare_interpreter.environment(), capture_output=True, text=True, timeout=20, check=False
    )
    assert (ran.stdout, ran.returncode) == ("", 1)


def launcher_of(worker: Child) -> int:
    """The launcher of a worker that is a process of its own, of which there is one."""
    (launcher,) = [pid for pid in children_of(worker.pid) if Path(f"/proc/{pid}/comm").read_text() == "ns-launcher\n"]
    return launcher
