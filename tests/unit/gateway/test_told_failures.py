"""Failures that parts which run apart tell of: bounded, the last ones, and for a while."""

from __future__ import annotations

import pytest

from tailrace.gateway.failures import AILING, LONGEST_TEXT, MOST_PARTS, FailureDesk
from tailrace.model.errors import InvalidRequest
from tailrace.model.reopening import WINDOW
from tailrace.testing.clock import ManualClock


def tell(desk: FailureDesk, part: str, why: str = "the beat: planted", times: int = 1) -> None:
    desk.tell(part, why, times)


def test_a_part_is_shown_as_it_told_last_and_for_a_while() -> None:
    # Given a worker that told twice, the second time later
    clock = ManualClock()
    desk = FailureDesk(clock)
    tell(desk, "worker a")
    clock.advance(WINDOW - 1)
    tell(desk, "scheduler b")
    tell(desk, "worker a", times=2)
    # Then it is shown once, as it is now
    shown = {each.part: each.times for each in desk.troubles()}
    assert shown == {"scheduler b": 1, "worker a": 2}
    assert all("the beat: planted" in each.what for each in desk.troubles())
    # And after a while not at all
    clock.advance(WINDOW)
    assert desk.troubles() == []


def test_what_ails_a_part_now_is_shown_since_it_began_and_until_it_is_well() -> None:
    # Given a worker that tells again and again that its functions cannot be loaded
    clock = ManualClock()
    desk, began = FailureDesk(clock), clock.wall()
    for _ in range(3):
        tell(desk, "worker a", "tasks.py:1: SyntaxError", times=0)
        clock.advance(AILING / 2)
    # Then that is shown, since the first time
    (shown,) = desk.troubles()
    assert (shown.what, shown.times, shown.since) == ("tasks.py:1: SyntaxError", 0, began)
    # And when it is well, nothing is
    tell(desk, "worker a", "", times=0)
    assert desk.troubles() == []


def test_who_tells_much_takes_no_memory() -> None:
    desk = FailureDesk(ManualClock())
    for number in range(2 * MOST_PARTS):
        tell(desk, f"worker {number}", "x" * 1_000_000)
    shown = desk.troubles()
    assert [each.part for each in shown] == [f"worker {number}" for number in range(MOST_PARTS, 2 * MOST_PARTS)]
    assert max(len(each.what) for each in shown) < 2 * LONGEST_TEXT
    with pytest.raises(InvalidRequest, match="no part"):
        tell(desk, "")
