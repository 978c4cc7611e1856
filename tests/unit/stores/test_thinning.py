"""Fewer ranges: those far apart stay apart; the order and every range's ends are kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.stores.thinning import thinned

Range = tuple[int, int, int]


def gap(one: Range, later: Range) -> int | None:
    return later[1] - one[2] if one[0] == later[0] else None


def join(one: Range, later: Range) -> Range:
    return one[0], one[1], later[2]


def test_the_nearest_neighbours_are_joined_first():
    # Given four ranges of one kind with gaps of 10, 1 and 5
    ranges = [(0, 0, 5), (0, 15, 20), (0, 21, 30), (0, 35, 40)]
    # Then fewer are made of those that are nearest
    assert thinned(ranges, 3, gap, join) == [(0, 0, 5), (0, 15, 30), (0, 35, 40)]
    assert thinned(ranges, 2, gap, join) == [(0, 0, 5), (0, 15, 40)]
    assert thinned(ranges, 4, gap, join) == ranges


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(0, 9)), max_size=30), st.integers(1, 10))
def test_as_few_as_may_be_and_nothing_is_uncovered(steps, most):
    # Given rising ranges of a few kinds
    ranges, last = [], 0
    for kind, step, length in sorted(steps):
        ranges.append((kind, last + step, last + step + length))
        last += step + length
    # When they are made fewer
    found = thinned(ranges, most, gap, join)
    # Then there are at most so many, or one of each kind, and each was within one of its kind
    assert len(found) <= max(most, len({kind for kind, _, _ in ranges}))
    assert found == sorted(found)
    for kind, first, last in ranges:
        assert any(one[0] == kind and one[1] <= first and last <= one[2] for one in found)
