"""The positions that a replay runs, in which order, and how fast."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.audit import Ending, Fate
from tailrace.model.drop import Cause, Drop
from tailrace.model.replay import Only, ReplayState, counted, may_move
from tailrace.tailers.rules.pace import MOMENT, Pace
from tailrace.tailers.rules.replay import Course, Known, choose, without

positions = st.sets(st.integers(0, 60), max_size=30)
spans = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=8).map(
    lambda steps: [
        (sum(a + b + 2 for a, b in steps[:i]) + a, sum(a + b + 2 for a, b in steps[:i]) + a + b)
        for i, (a, b) in enumerate(steps)
    ]
)


def covered(found):
    return [position for first, last in found for position in range(first, last + 1)]


def drop(first, last, cause=Cause.GATE, items=None):
    return Drop(first, last, last - first + 1 if items is None else items, cause)


def test_all_is_the_range_and_an_empty_range_is_nothing():
    assert choose(Only.ALL, 3, 9, Known()).spans == [(3, 8)]
    assert choose(Only.ALL, 9, 9, Known()).spans == []


@given(died=positions, first=st.integers(0, 60), size=st.integers(0, 60))
def test_failed_are_exactly_those_that_died_in_the_range(died, first, size):
    found = choose(Only.FAILED, first, first + size, Known(died=sorted(died)))
    assert covered(found.spans) == sorted(each for each in died if first <= each < first + size)
    assert found.unknown == []


def test_what_died_so_long_ago_that_not_each_is_known_is_said():
    assert "not each is known" in choose(Only.FAILED, 0, 9, Known(died=None)).unknown[0]


def test_dropped_are_those_of_gates_and_seeks_and_unseen_those_that_never_were_there():
    drops = [drop(2, 4), drop(4, 6, Cause.SEEK), drop(8, 8, Cause.RETENTION), drop(10, 11, Cause.ABSENT)]
    known = Known(began=1, drops=drops)
    assert choose(Only.DROPPED, 0, 20, known).spans == [(2, 6)]
    assert choose(Only.UNSEEN, 0, 20, known).spans == [(0, 0), (8, 8), (10, 11)]
    assert choose(Only.UNSEEN, 1, 11, known).spans == [(8, 8), (10, 10)]


def test_a_blurred_range_is_told_by_the_endings_or_said_to_be_unknown():
    # Given a range of which three positions were dropped
    blurred = [drop(10, 19, items=3)]
    exact = [Ending(11, 12, {Fate.DROPPED: 2}), Ending(15, 15, {Fate.DEAD: 1}), Ending(18, 18, {Fate.DROPPED: 1})]
    assert choose(Only.DROPPED, 0, 30, Known(0, 10, exact, blurred)).spans == [(11, 12), (18, 18)]
    # When the endings are blurred too, do not reach so far back, or miss one
    mixed = [Ending(11, 18, {Fate.DROPPED: 3, Fate.DEAD: 1})]
    for known in (Known(0, 10, mixed, blurred), Known(0, 11, exact, blurred), Known(0, 10, exact[:2], blurred)):
        found = choose(Only.DROPPED, 0, 30, known)
        assert found.spans == [] and "3 of the positions 10 to 19" in found.unknown[0]


@given(spans=spans, left_out=positions)
def test_what_is_left_out_is_left_out_and_nothing_else(spans, left_out):
    found = without(spans, sorted(left_out))
    assert covered(found) == [each for each in covered(spans) if each not in left_out]


@given(spans=spans, at=st.integers(0, 70), limits=st.lists(st.integers(1, 9), min_size=200, max_size=200))
def test_a_course_hands_out_each_position_once_in_order_and_can_go_on_anywhere(spans, at, limits):
    course, found = Course(spans, at), []
    for limit in limits:
        if course.over:
            break
        some = course.next(limit, near=3)
        assert 0 < len(some) <= limit
        assert all(later - former <= 3 for former, later in pairwise(some))
        assert course.rest[0] == some[0]
        found += some
        course.passed(some[-1] + 1)
    assert course.over
    assert found == [each for each in covered(spans) if each >= at]


@given(
    rate=st.floats(0.1, 1e6),
    steps=st.lists(st.tuples(st.floats(0, 100), st.integers(1, 5000)), min_size=1, max_size=30),
)
def test_no_stretch_of_time_gets_more_than_its_rate_and_a_moment(rate, steps):
    pace, now, taken = Pace(rate, 0.0), 0.0, []
    for pause, limit in steps:
        now += pause
        some = pace.ready(now, limit)
        assert some <= limit
        pace.took(some)
        taken.append((now, some))
    for index, (began, _) in enumerate(taken):
        for ended, _ in taken[index:]:
            items = sum(some for at, some in taken[index:] if at <= ended)
            assert items <= max(1.0, rate * MOMENT) + (ended - began) * rate + 1e-3


def test_one_may_be_read_after_its_wait_and_no_rate_means_no_bound():
    pace = Pace(4.0, 10.0)
    assert pace.ready(10.0, 9) == 0 and pace.wait == pytest.approx(0.25)
    assert pace.ready(10.25, 9) == 1
    pace.took(1)
    assert pace.ready(20.0, 9) == 1  # a pause is not made up for
    assert Pace(0.0, 0.0).ready(0.0, 9) == 9


def test_nothing_comes_after_the_end_of_a_replay():
    for over in (ReplayState.DONE, ReplayState.CANCELLED):
        assert [state for state in ReplayState if may_move(over, state)] == [over]
    assert not may_move(ReplayState.CANCELLING, ReplayState.RUNNING)


def test_what_was_parked_is_counted_where_it_is_now():
    tally = {Fate.SUCCEEDED: 5, Fate.DELAYED: 6, Fate.DEAD: 1, Fate.FILTERED: 99}
    assert counted(tally, waiting=1, done=3, dead=2) == {
        "succeeded": 5, "delayed": 1, "done after a delay": 3, "dead": 3,
    }  # fmt: skip
