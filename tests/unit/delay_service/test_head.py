"""The head of a rung: when it may move, whatever the clocks do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.delay_service.rules.head import LONGEST_SLEEP, Head, gathers
from tailrace.delay_service.rules.ladder import GRAIN

WAIT = 30.0


def ready(head: Head, entered: list[float], wall: float, monotonic: float, first: int = 0) -> tuple[int, float]:
    positions = list(range(first, first + len(entered)))
    return head.ready(positions, entered, [time + WAIT for time in entered], wall, monotonic)


def test_items_move_once_they_have_waited() -> None:
    head = Head(WAIT)
    assert ready(head, [100.0, 101.0], 105.0, 0.0) == (0, 25.0)
    assert ready(head, [100.0, 101.0], 130.0, 25.0) == (1, 1.0)
    assert ready(head, [101.0], 131.0, 26.0, first=1) == (1, 0.0)


def test_a_clock_set_back_holds_the_head_no_longer_than_one_rung() -> None:
    head = Head(WAIT)
    # Given an item that entered an hour ahead of what the clock says now
    assert ready(head, [4000.0, 4001.0], 400.0, 0.0)[0] == 0
    # When one rung has passed by the monotonic clock, then it moves, and the next one follows at its distance
    count, sleep = ready(head, [4000.0, 4001.0], 430.0, WAIT + GRAIN)
    assert (count, round(sleep, 3)) == (1, 1.0)
    assert ready(head, [4001.0], 431.0, WAIT + GRAIN + 1.0, first=1)[0] == 1


def test_what_entered_after_the_step_waits_its_own_time() -> None:
    head = Head(WAIT)
    ready(head, [4000.0], 400.0, 0.0)
    assert ready(head, [4000.0, 402.0], 430.5, WAIT + GRAIN) == (1, 1.5)


def test_a_clock_set_forward_ends_the_wait() -> None:
    head = Head(WAIT)
    assert ready(head, [100.0], 100.0, 0.0)[0] == 0
    assert ready(head, [100.0], 9000.0, 1.0)[0] == 1


def test_a_long_wait_is_looked_at_now_and_then() -> None:
    head = Head(21_600.0)
    assert head.ready([0], [100.0], [21_700.0], 100.0, 0.0) == (0, LONGEST_SLEEP)


@given(st.lists(st.floats(0, 50), max_size=20), st.floats(0, 200))
def test_with_good_clocks_exactly_those_move_that_have_waited(gaps: list[float], wall: float) -> None:
    entered, at = [], 0.0
    for gap in gaps:
        at += gap
        entered.append(at)
    count, _ = ready(Head(WAIT), entered, wall, wall)
    assert count == sum(time + WAIT <= wall for time in entered)


def test_moves_into_many_streams_gather_longer_and_three_quarters_of_their_wait_at_most() -> None:
    assert gathers(1.0, 0) == gathers(3600.0, 0) == 0.25
    assert gathers(1.0, 100) == 0.5
    assert gathers(1.0, 10_000) == gathers(3600.0, 10_000) == 0.75
    assert gathers(0.1, 10_000) == pytest.approx(0.075)
