"""Gathering of items that leave a stream, behind a write."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.departure_linger import LONGER, LONGEST, MANY, SHORT, gathers


def test_the_more_were_written_the_longer_the_next_ones_gather() -> None:
    assert gathers(1, math.inf) == SHORT
    assert gathers(MANY, math.inf) == LONGEST


@given(st.integers(0, 5000), st.floats(-10, 1e6))
def test_what_is_due_soon_does_not_wait_for_more_than_half_of_that(written: int, soonest: float) -> None:
    # Given what was written, and when the first of what gathers is due
    linger = gathers(written, soonest)
    # Then it gathers within bounds, and beyond the shorter ones only what has the time
    assert SHORT <= linger <= LONGEST
    assert linger <= LONGER or linger.seconds <= soonest / 2
