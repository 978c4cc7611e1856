"""Pauses between repeated tries of something that failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.backoff import Backoff, doubled

SECONDS = st.floats(0.001, 1000.0)


def test_a_pause_doubles_up_to_its_cap_and_begins_anew_when_it_is_well() -> None:
    backoff = Backoff(0.1, 1.0)
    assert [backoff.pause() for _ in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    backoff.reset()
    assert backoff.pause() == pytest.approx(0.1)


def test_chance_spreads_each_pause_and_not_what_it_doubles_from() -> None:
    chances = iter([0.0, 0.5, 0.999])
    backoff = Backoff(1.0, 10.0, lambda: next(chances))
    assert [backoff.pause() for _ in range(3)] == pytest.approx([0.5, 2.0, 4.0 * 1.499])


@given(first=SECONDS, last=SECONDS, times=st.integers(0, 10**9))
def test_however_often_it_failed_a_pause_is_one_that_can_be_waited(first: float, last: float, times: int) -> None:
    pause = doubled(first, last, times)
    assert 0.0 < pause <= last
    assert pause <= doubled(first, last, times + 1)
