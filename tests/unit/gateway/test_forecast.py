"""The forecast of when a backlog will be empty, in virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.rules.forecast import LEAST, STEP, WATCHED, Growth


def watched(sizes: list[tuple[float, int]]) -> Growth:
    growth = Growth()
    for at, items in sizes:
        growth.seen(items, at)
    return growth


@given(st.integers(-50, 50), st.integers(3_000_000, 5_000_000), st.integers(int(LEAST / STEP) + 1, 90))
def test_a_steady_change_is_seen_as_it_is_and_ends_when_it_says(rate: int, first: int, looks: int) -> None:
    growth = watched([(n * STEP, first + int(rate * n * STEP)) for n in range(looks)])
    items = first + int(rate * (looks - 1) * STEP)
    found = growth.forecast("queue", items)
    assert found.growth == pytest.approx(rate, abs=1e-3)
    assert found.watched == min(WATCHED, (looks - 1) * STEP)
    if rate < 0:
        assert found.empty_in == pytest.approx(items / -rate, rel=1e-3)
    else:
        assert found.empty_in == -1


@given(st.lists(st.tuples(st.floats(0, 40), st.integers(0, 10**7)), min_size=1, max_size=200))
def test_whatever_was_seen_a_forecast_is_a_time_or_none_and_little_is_kept(steps: list[tuple[float, int]]) -> None:
    growth, now = Growth(), 0.0
    for gap, items in steps:
        now += gap
        growth.seen(items, now)
        found = growth.forecast("queue", items)
        assert len(growth._sizes) <= WATCHED / STEP + 1
        assert found.empty_in == -1 or found.empty_in >= 0
        assert (found.empty_in == 0) is (items == 0)
        assert 0 <= found.watched <= WATCHED
        if found.watched < LEAST and items:
            assert (found.growth, found.empty_in) == (0, -1)
        if found.empty_in > 0:
            assert found.growth < 0
    assert growth.least == min(items for _, items in growth._sizes)


def test_what_was_long_ago_counts_no_more() -> None:
    # Given a backlog that grew for long, and has shrunk for as long as is watched
    sizes = [(n * STEP, 100 * n) for n in range(1000)]
    last, items = sizes[-1]
    looks = int(WATCHED / STEP) + 1
    sizes += [(last + n * STEP, items - 10 * n) for n in range(1, looks + 1)]
    # When it is asked, then only that counts
    found = watched(sizes).forecast("queue", sizes[-1][1])
    assert found.growth == pytest.approx(-10 / STEP)


def test_a_clock_that_went_back_begins_anew() -> None:
    growth = watched([(1000.0, 5), (1030.0, 9), (10.0, 7)])
    assert growth.forecast("queue", 7).watched == 0
