"""Credit of sessions and cells, within its bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.limits import Quota
from tailrace.scheduler.rules.credit import cell_limit, session_total, steady, too_much


@given(
    st.integers(0, 10**6),
    st.integers(64, 10**5),
    st.integers(64, 10**5),
    st.integers(1, 64),
    st.integers(0, 1000),
    st.floats(0, 1e5),
)
def test_credit_stays_within_its_bounds(
    capacity: int, bound: int, lane: int, sessions: int, concurrency: int, rate: float
) -> None:
    total = session_total(capacity, bound)
    assert 64 <= total <= max(64, bound)
    limit = cell_limit(capacity, total, lane, sessions, Quota("f", concurrency, rate))
    assert (limit == 0) == (capacity == 0)
    assert limit <= total // 2
    assert limit * sessions <= lane
    if capacity and 2 * capacity <= bound:
        assert 2 * capacity <= total <= max(64, 4 * capacity)


def test_a_limited_function_gets_little_credit() -> None:
    plain = cell_limit(1000, 4000, 20_000, 1, None)
    assert cell_limit(1000, 4000, 20_000, 1, Quota("f", concurrency=10)) == 40 < plain
    assert cell_limit(1000, 4000, 20_000, 1, Quota("f", rate=100.0)) == 200 < plain
    assert cell_limit(1000, 4000, 20_000, 1, Quota("f", concurrency=1)) == 16
    assert steady(1000) == 1024 and steady(0) == 0
    assert too_much(129, 64) and not too_much(128, 64)
