"""The kernel timer: always at the earliest deadline, never too late, off when nothing is in the process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.runtime.deadman import Deadman, Relative


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
    deadman = Deadman(Relative(kernel.arm, kernel.clock), kernel.clock)
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


def test_a_timer_speaks_for_an_assignment_that_is_read_only_after_it(kernel: Kernel) -> None:
    """Given a function that blocks the loop for longer than a lease, while work waits behind it that is renewed."""
    deadman = Deadman(Relative(kernel.arm, kernel.clock), kernel.clock)
    assert deadman.admit(1, 110.0, 1)
    deadman.renewed(2, 130.0)
    kernel.now = 120.0
    # When it has ended, and only then what waited is read, whose frame says a deadline that has passed
    deadman.left(1)
    assert kernel.rings is None
    assert deadman.admit(2, 110.0, 3)
    # Then that runs until what the renewal said, and a renewal that came too late for it lets nothing begin
    assert kernel.rings == pytest.approx(130.0)
    kernel.now = 131.0
    assert not deadman.admit(2, 110.0, 1)


def test_a_lease_that_is_over_is_not_admitted(kernel: Kernel) -> None:
    deadman = Deadman(Relative(kernel.arm, kernel.clock), kernel.clock)
    assert not deadman.admit(1, 100.0, 1)
    assert kernel.rings is None


def test_a_freeze_between_computing_and_arming_makes_the_timer_no_later(kernel: Kernel) -> None:
    deadman = Deadman(Relative(kernel.arm, kernel.clock), kernel.clock)
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
            st.tuples(st.just("send"), st.floats(0.5, 30)),
            st.tuples(st.just("read"), st.just(0.0)),
            st.tuples(st.just("renew"), st.floats(0.5, 30)),
            st.tuples(st.just("leave"), st.just(0.0)),
            st.tuples(st.just("pass"), st.floats(0, 0.4)),
        ),
        max_size=40,
    )
)
def test_whatever_happens_the_timer_never_rings_after_an_earliest_deadline(events: list[tuple[str, float]]) -> None:
    """Frames are read now or later; a renewal speaks for all that was sent, read or not."""
    kernel = Kernel()
    deadman = Deadman(Relative(kernel.arm, kernel.clock), kernel.clock)
    unread: dict[int, tuple[float, float]] = {}  # number → what its frame says, what holds
    inside: dict[int, float] = {}
    number = 0
    for event, value in events:
        if event == "send":
            number += 1
            unread[number] = (kernel.now + value, kernel.now + value)
        elif event == "read" and unread:
            first = min(unread)
            said, holds = unread.pop(first)
            assert deadman.admit(first, said, 1) == (holds > kernel.now)
            if holds > kernel.now:
                inside[first] = holds
        elif event == "renew" and (inside or unread):
            deadline = kernel.now + value
            deadman.renewed(number, deadline)
            inside = dict.fromkeys(inside, deadline)
            unread = {one: (said, deadline) for one, (said, _) in unread.items()}
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


def test_what_is_told_is_never_later_than_what_is_armed_when_it_gets_sooner_and_the_other_way_round() -> None:
    """A reader after a death by the timer sees a time that was over."""
    steps: list[tuple[str, float]] = []
    deadman = Deadman(lambda at: steps.append(("armed", at)), lambda: 100.0, told=lambda at: steps.append(("told", at)))
    deadman.admit(1, 118.0, 1)
    deadman.admit(2, 110.0, 1)
    deadman.renewed(2, 130.0)
    deadman.left(2)
    assert steps == [
        *[("told", 118.0), ("armed", 118.0)],
        *[("told", 110.0), ("armed", 110.0)],
        *[("armed", 130.0), ("told", 130.0)],
        *[("armed", 0.0), ("told", 0.0)],
    ]


def test_what_is_armed_is_armed_again_on_request() -> None:
    armed: list[float] = []
    deadman = Deadman(armed.append, lambda: 100.0)
    deadman.again()
    deadman.admit(1, 118.0, 1)
    deadman.again()
    deadman.left(1)
    deadman.again()
    assert armed == [118.0, 118.0, 0.0]
