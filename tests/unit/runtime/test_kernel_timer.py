"""The timer that ends a process: at its time, awake or stopped, whatever the process does to its signals."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time

import pytest

from tailrace.runtime.kernel_timer import AlarmTimer, KillTimer, kernel_timer

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="timer_create is Linux's here")

CHILD = """
import os, signal, sys, time
from tailrace.runtime.deadman import Deadman
from tailrace.runtime.kernel_timer import AlarmTimer, KillTimer
timer = {"kill": KillTimer, "alarm": AlarmTimer}[sys.argv[1]]()
deadman = Deadman(timer)
deadman.admit(1, float(sys.argv[2]), 1)
match sys.argv[3]:
    case "takes it away":
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
    case "blocks it":
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        signal.setitimer(signal.ITIMER_REAL, 3600)
    case "is off":
        deadman.left(1)
print("armed", flush=True)
ends = time.monotonic() + 30
while time.monotonic() < ends:
    os.write(1, b".")
    time.sleep(0.001)
    if timer.look():
        deadman.again()
    if sys.argv[3] == "is off" and time.monotonic() > float(sys.argv[2]) + 0.2:
        break
"""


def _child(kind: str, deadline: float, does: str = "nothing") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", CHILD, kind, repr(deadline), does]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"armed\n"
    return child


KINDS = [pytest.param("kill", -signal.SIGKILL, marks=LINUX), ("alarm", -signal.SIGALRM)]


@pytest.mark.parametrize(("kind", "status"), KINDS)
@pytest.mark.parametrize("does", ["nothing", "takes it away", "blocks it"])
def test_a_process_that_runs_past_its_deadline_is_ended_by_the_kernel(kind: str, status: int, does: str) -> None:
    deadline = time.monotonic() + 2.0
    with _child(kind, deadline, does) as child:
        assert child.wait(10) == status
        assert time.monotonic() >= deadline


@pytest.mark.parametrize(("kind", "status"), KINDS)
def test_a_timer_that_is_off_ends_nothing(kind: str, status: int) -> None:
    with _child(kind, time.monotonic() + 1.0, "is off") as child:
        assert child.wait(10) == 0


def _frozen(child: subprocess.Popen[bytes]) -> None:
    os.kill(child.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    child.stdout.read()


@LINUX
def test_a_process_frozen_past_its_deadline_dies_frozen() -> None:
    with _child("kill", time.monotonic() + 2.0, "takes it away") as child:
        _frozen(child)
        assert child.wait(10) == -signal.SIGKILL
        assert child.stdout is not None
        assert not child.stdout.read()


def test_with_a_timer_that_rings_on_waking_it_dies_before_it_writes() -> None:
    deadline = time.monotonic() + 2.0
    with _child("alarm", deadline) as child:
        _frozen(child)
        time.sleep(max(0.0, deadline - time.monotonic()) + 0.1)
        os.kill(child.pid, signal.SIGCONT)
        assert child.wait(10) == -signal.SIGALRM
        assert child.stdout is not None
        assert not child.stdout.read()


@LINUX
def test_where_the_kernel_gives_no_timer_the_alarm_is_taken_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused() -> KillTimer:
        raise PermissionError(1, "Operation not permitted")

    before = signal.getsignal(signal.SIGALRM)
    try:
        with caplog.at_level(logging.WARNING, "tailrace.runtime"):
            assert isinstance(kernel_timer(refused), AlarmTimer)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert "functions must leave both alone" in caplog.text
    assert isinstance(kernel_timer(), KillTimer)


@LINUX
def test_a_deadline_of_any_size_is_armed_and_none_disarms() -> None:
    timer = KillTimer()
    for deadline in (time.monotonic() + 1000, 4e9, 0.0):
        timer(deadline)
