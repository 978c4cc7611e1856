"""Restarts: an executor that dies young again and again is replaced ever more slowly, all others at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.runtime.rules.restarts import LONG_LIFE, Restarts

YOUNG = {"meant": False, "lived": 0.5, "runs": 3}


def test_those_that_die_young_are_replaced_ever_more_slowly() -> None:
    restarts = Restarts(round_of_work=40)
    pauses = [restarts.died(**YOUNG) for _ in range(10)]
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


def test_one_that_cannot_be_started_is_tried_again_ever_more_slowly() -> None:
    restarts = Restarts(round_of_work=40)
    assert [restarts.not_started() for _ in range(7)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    # And one that starts then and does its work is followed at once
    assert restarts.died(meant=False, lived=1.0, runs=40) == 0


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 10), st.integers(0, 80))))
def test_whoever_worked_lived_long_or_was_ended_is_replaced_at_once(lives: list[tuple[bool, float, int]]) -> None:
    restarts = Restarts(round_of_work=40)
    before = 0.0
    for meant, lived, runs in lives:
        pause = restarts.died(meant=meant, lived=lived, runs=runs)
        if meant or lived >= LONG_LIFE or runs >= 40:
            assert pause == 0
        else:
            assert pause >= before
        before = pause
