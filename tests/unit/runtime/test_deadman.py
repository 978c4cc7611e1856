"""The kernel timer: always at the earliest deadline, never too late, off when nothing is in the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.runtime.deadman import Deadman


class Kernel:
    """A clock and a timer; `frozen` seconds pass while the timer is being armed."""

    def __init__(self) -> None:
        self.now = 100.0
        self.rings: float | None = None
        self.frozen = 0.0

    def clock(self) -> float:
        return self.now

    def arm(self, delay: float) -> None:
        self.now, self.frozen = self.now + self.frozen, 0.0
        self.rings = self.now + delay if delay else None


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def test_the_timer_is_the_earliest_deadline_and_off_when_empty(kernel: Kernel) -> None:
    deadman = Deadman(kernel.arm, kernel.clock)
    assert deadman.admit(1, 118.0, 2)
    assert deadman.admit(2, 110.0, 1)
    assert deadman.admit(3, 120.0, 1)
    assert kernel.rings == pytest.approx(110.0)
    deadman.renewed(2, 130.0)  # says nothing of assignment 3
    assert kernel.rings == pytest.approx(120.0)
    deadman.renewed(3, 130.0)
    assert kernel.rings == pytest.approx(130.0)
    deadman.left(3)
    assert kernel.rings == pytest.approx(130.0)
    deadman.left(1)
    assert kernel.rings is None


def test_an_assignment_that_arrives_after_a_timer_that_covers_it_may_only_shorten(kernel: Kernel) -> None:
    deadman = Deadman(kernel.arm, kernel.clock)
    deadman.renewed(1, 130.0)
    assert kernel.rings is None
    assert deadman.admit(1, 118.0, 1)
    assert kernel.rings == pytest.approx(118.0)


def test_a_lease_that_is_over_is_not_admitted(kernel: Kernel) -> None:
    deadman = Deadman(kernel.arm, kernel.clock)
    assert not deadman.admit(1, 100.0, 1)
    assert kernel.rings is None


def test_a_freeze_between_computing_and_arming_makes_the_timer_no_later(kernel: Kernel) -> None:
    deadman = Deadman(kernel.arm, kernel.clock)
    kernel.frozen = 5.0
    deadman.admit(1, 110.0, 1)
    assert kernel.rings == pytest.approx(110.0)
    kernel.frozen = 60.0
    deadman.admit(2, 108.0, 1)
    assert kernel.rings is not None
    assert kernel.rings <= kernel.now + 1e-3  # already over: it rings at once


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("admit"), st.floats(0.5, 30)),
            st.tuples(st.just("renew"), st.floats(0.5, 30)),
            st.tuples(st.just("leave"), st.just(0.0)),
            st.tuples(st.just("pass"), st.floats(0, 0.4)),
        ),
        max_size=40,
    )
)
def test_whatever_happens_the_timer_never_rings_after_an_earliest_deadline(events: list[tuple[str, float]]) -> None:
    kernel = Kernel()
    deadman = Deadman(kernel.arm, kernel.clock)
    inside: dict[int, float] = {}
    number = 0
    for event, value in events:
        if event == "admit":
            number += 1
            if deadman.admit(number, kernel.now + value, 1):
                inside[number] = kernel.now + value
        elif event == "renew" and inside:
            deadline = kernel.now + value
            deadman.renewed(number, deadline)
            inside = dict.fromkeys(inside, deadline)
        elif event == "leave" and inside:
            inside.popitem()
            deadman.left(1)
        elif event == "pass":
            kernel.now += value
        if inside:
            assert kernel.rings is not None
            assert kernel.rings <= max(min(inside.values()), kernel.now) + 1e-3
        else:
            assert kernel.rings is None


CHILD = """
import os, signal, sys, threading, time
from tailrace.runtime.deadman import Deadman
signal.signal(signal.SIGALRM, signal.SIG_DFL)
deadman = Deadman()
deadman.admit(1, float(sys.argv[1]), 1)
print("armed", flush=True)
while True:
    os.write(1, b".")
    time.sleep(0.001)
"""


def _child(deadline: float) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", CHILD, repr(deadline)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"armed\n"
    return child


def test_a_process_that_runs_past_its_deadline_is_ended_by_the_kernel() -> None:
    with _child(time.monotonic() + 2.0) as child:
        assert child.wait(10) == -signal.SIGALRM


def test_a_process_frozen_past_its_deadline_dies_on_waking_before_it_writes() -> None:
    deadline = time.monotonic() + 2.0
    with _child(deadline) as child:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        child.stdout.read()
        time.sleep(max(0.0, deadline - time.monotonic()) + 0.1)
        os.kill(child.pid, signal.SIGCONT)
        assert child.wait(10) == -signal.SIGALRM
        assert not child.stdout.read()
