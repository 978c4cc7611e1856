"""Fences as users see them: one scale for streams and for what was redriven out of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.fence import FENCE_BITS, FENCES_FROM, LATEST, fence_at, micros_of

#: Microseconds since 1970, from 2020 to 2087.
micros = st.integers(FENCES_FROM * 1_000_000, 3_690_000_000_000_000)


@given(micros, st.integers(1, 1 << 40))
def test_a_fence_of_a_later_time_is_higher_by_more_than_a_thousand_a_microsecond(at: int, later: int) -> None:
    assert fence_at(at + later) - fence_at(at) > 1000 * later or fence_at(at + later) == LATEST
    assert micros_of(fence_at(at)) == at


@given(micros)
def test_a_fence_tells_the_second_of_an_epoch_and_has_63_bits(at: int) -> None:
    assert fence_at(at) >> FENCE_BITS == at // 1_000_000 - FENCES_FROM
    assert fence_at(at) < 1 << 63 > LATEST


def test_a_time_that_no_clock_tells_is_at_the_bounds() -> None:
    assert (fence_at(0), fence_at(1 << 62)) == (0, LATEST)
