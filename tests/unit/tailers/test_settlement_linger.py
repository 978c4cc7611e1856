"""Plain successes gather before they are written together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.settlement_linger import ENOUGH, GATHER, PART, SOON, Gathering

WINDOW = 8192


def written_at(now: float, window: int = WINDOW) -> Gathering:
    gathering = Gathering(window)
    gathering.add(1, now, awaited=False)
    gathering.written(now)
    return gathering


def test_a_lone_item_is_written_at_once() -> None:
    assert Gathering(WINDOW).add(1, 0.0, awaited=False)
    later = written_at(1.0)
    assert later.add(1, 1.0 + SOON, awaited=False) and later.rest(1.0 + SOON) == 0


def test_in_a_steady_flow_items_gather_until_the_write_before_is_so_old() -> None:
    flow = written_at(1.0)
    assert not flow.add(1, 1.005, awaited=False)
    assert flow.rest(1.005) == pytest.approx(GATHER.seconds - 0.005)
    assert not flow.add(1, 1.015, awaited=False)  # not the first, so it shows nothing
    assert flow.rest(1.015) == pytest.approx(GATHER.seconds - 0.015)
    assert flow.rest(1.0 + GATHER.seconds) == 0


@pytest.mark.parametrize(("items", "awaited"), [(1, True), (ENOUGH, False)])
def test_what_somebody_waits_for_and_what_is_enough_is_written_at_once_with_all_that_gathered(
    items: int, awaited: bool
) -> None:
    flow = written_at(1.0)
    assert not flow.add(1, 1.001, awaited=False)
    assert flow.add(items, 1.002, awaited=awaited)
    assert flow.rest(1.002) == 0
    flow.written(1.002)
    assert not flow.add(1, 1.003, awaited=False)


def test_a_small_window_is_not_held_up() -> None:
    assert written_at(1.0, window=PART).add(1, 1.001, awaited=False)


@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(1, 100), st.booleans())))
def test_no_rest_is_longer_than_the_rule_says_though_the_clock_jumps(steps: list[tuple[float, int, bool]]) -> None:
    gathering, now = Gathering(WINDOW), 0.0
    for moved, items, awaited in steps:
        now += moved
        hurry = gathering.add(items, now, awaited=awaited)
        assert 0 <= gathering.rest(now) <= GATHER.seconds
        if hurry:
            assert gathering.rest(now) == 0
            gathering.written(now)
