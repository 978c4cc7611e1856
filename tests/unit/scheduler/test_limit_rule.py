"""A limit (token bucket and concurrency) gives no more than its rate, burst and concurrency."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.limits import Quota
from tailrace.scheduler.rules.limit import UNLIMITED, Limit


@given(
    st.floats(0.1, 1000),
    st.floats(0, 100),
    st.lists(st.tuples(st.floats(0, 5), st.integers(0, 500)), max_size=40),
)
def test_a_bucket_never_gives_more_than_rate_times_time_and_burst(
    rate: float, burst: float, asks: list[tuple[float, int]]
) -> None:
    bucket, now = Limit("l", Quota("f", rate=rate, burst=burst), 0.0), 0.0
    starts: list[tuple[float, int]] = []
    for pause, wanted in asks:
        now += pause
        count = min(wanted, bucket.room(now))
        bucket.start(count)
        starts.append((now, count))
    for first, (begin, _) in enumerate(starts):
        for last in range(first, len(starts)):
            taken = sum(count for _, count in starts[first : last + 1])
            assert taken <= rate * (starts[last][0] - begin) + bucket.burst + 1e-6 * (1 + taken)


@given(st.floats(0.1, 1000), st.floats(0, 50))
def test_an_empty_bucket_names_when_its_next_token_comes(rate: float, burst: float) -> None:
    bucket = Limit("l", Quota("f", rate=rate, burst=burst), 0.0)
    bucket.start(bucket.room(0.0))
    at = bucket.next_at()
    assert at is not None
    assert bucket.room(at + 1e-6 * (1 + at)) >= 1
    other = Limit("l", Quota("f", rate=rate, burst=burst), 0.0)
    other.start(other.room(0.0))
    assert other.room(at - min(at, 0.01 / rate)) == 0 or at == 0


def test_a_smaller_burst_takes_effect_at_once() -> None:
    bucket = Limit("l", Quota("f", rate=10, burst=100), 0.0)
    bucket.change(Quota("f", rate=10, burst=5), 0.0, 2)
    assert bucket.room(0.0) == 5


def test_a_limit_has_room_up_to_its_concurrency() -> None:
    limit = Limit("l", Quota("f", 3), 0.0)
    limit.found(1)
    limit.start(2)
    assert limit.room(0.0) == 0 and limit.next_at() is None
    limit.end(1)
    assert limit.room(0.0) == 1
    limit.change(Quota("f", 1), 0.0, 2)
    assert limit.room(0.0) < 0
    limit.change(Quota("f", rate=5.0), 0.0, 3)
    assert limit.room(0.0) == 5 and limit.concurrency == UNLIMITED
