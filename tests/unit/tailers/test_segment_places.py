"""Positions ↔ places in objects."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.segment import Segment
from tailrace.tailers.rules.segments import Cut, NextPlace, following, placed, within

cuts = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=8).map(
    lambda drawn: [
        Cut(items, ordinal, "v", 10 * index, 10, end=end) for index, (items, ordinal, end) in enumerate(drawn)
    ]
)


@given(st.integers(0, 100), cuts)
def test_segments_follow_each_other_without_a_gap(position, cuts):
    segments = placed(position, cuts)
    assert [Cut(*segment[1:]) for segment in segments] == cuts
    assert segments[0].first == position
    assert all(one.after == two.first for one, two in pairwise(segments))


@given(st.integers(0, 100), cuts, st.sets(st.integers(0, 140)))
def test_every_position_is_in_one_segment(position, cuts, wanted):
    segments = placed(position, cuts)
    found = [segment.first + index for segment in segments for index in within(segment, sorted(wanted))]
    assert found == sorted(each for each in wanted if position <= each < segments[-1].after)


def test_reading_goes_on_behind_the_last_segment():
    assert following(None) == NextPlace(0, 0, "", 0)
    assert following(Segment(5, 2, 3, "v", 40, 10)) == NextPlace(7, 3, "v", 50)
    assert following(Segment(5, 2, 3, "v", 40, 10, end=True)) == NextPlace(7, 4, "", 0)
