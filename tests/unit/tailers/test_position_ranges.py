"""Rising positions as ranges: exactly the given ones, in as few ranges as there are runs."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.position_ranges import ranges


@given(st.sets(st.integers(0, 400)))
def test_the_ranges_are_the_positions_and_no_two_touch(positions: set[int]) -> None:
    found = list(ranges(sorted(positions)))
    assert [position for first, last in found for position in range(first, last + 1)] == sorted(positions)
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(found))


def test_a_flight_of_which_a_few_failed_is_few_ranges() -> None:
    healthy = [position for position in range(5000, 5256) if position not in (5000, 5100, 5101, 5255)]
    assert list(ranges(healthy)) == [(5001, 5099), (5102, 5254)]
