"""The retry rule: its goldens, its bounds, and policies that are refused."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import InvalidRequest
from tailrace.model.retry import DEFAULT_RETRY, Retry, bounded, delay_after, may_retry, may_retry_crash

QUARTIC = Retry(backoff="quartic", max_attempts=20)


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(1, 6), (2, 27), (3, 113), (5, 1004), (8, 8812), (10, 25_383), (20, 722_766)],
)
def test_quartic_delays_add_up_to_the_goldens(attempts: int, seconds: int) -> None:
    total = list(accumulate(delay_after(QUARTIC, number) for number in range(1, attempts + 1)))
    assert total[-1] == seconds


@pytest.mark.parametrize(("most", "attempts", "crashes"), [(0, 5, 3), (1, 1, 1), (2, 2, 2), (4, 4, 3), (9, 5, 3)])
def test_the_smaller_of_two_bounds_holds(most: int, attempts: int, crashes: int) -> None:
    policy = bounded(Retry(max_attempts=5, max_crashes=3, backoff="list", delays=(7.0,)), most)
    assert (policy.max_attempts, policy.max_crashes, policy.delays) == (attempts, crashes, (7.0,))


def test_quartic_has_no_jitter() -> None:
    assert delay_after(QUARTIC, 3, lambda: 0.9) == 86.0


def test_the_default_doubles_from_five_seconds_to_six_hours() -> None:
    delays = [delay_after(DEFAULT_RETRY, number) for number in range(1, 21)]
    assert delays[:4] == [5.0, 10.0, 20.0, 40.0]
    assert delays[-1] == 6 * 3600.0
    # 19 pauses between 20 attempts: about two days
    assert 36 < sum(delays[:19]) / 3600 < 60


@given(
    st.floats(0.001, 100.0),
    st.floats(0.001, 100_000.0),
    st.floats(0, 1),
    st.integers(1, 10_000),
    st.floats(0, 1, exclude_max=True),
)
def test_jitter_stays_within_its_share(first: float, cap: float, jitter: float, attempts: int, drawn: float) -> None:
    policy = Retry(max_attempts=10_000, first=first, max=cap, jitter=jitter)
    base = delay_after(policy, attempts)
    assert base <= cap
    assert base == cap or base >= first
    found = delay_after(policy, attempts, lambda: drawn)
    assert base * (1 - jitter / 2) * (1 - 1e-9) <= found <= base * (1 + jitter / 2) * (1 + 1e-9)


@given(st.integers(1, 9_999))
def test_without_jitter_a_later_attempt_never_waits_less(attempts: int) -> None:
    for policy in (DEFAULT_RETRY, QUARTIC):
        assert delay_after(policy, attempts + 1) >= delay_after(policy, attempts)


def test_a_list_gives_its_delays_and_repeats_the_last() -> None:
    policy = Retry(backoff="list", delays=("1s", 30, "5m"))
    assert [delay_after(policy, number) for number in (1, 2, 3, 4, 100)] == [1.0, 30.0, 300.0, 300.0, 300.0]


def test_attempts_and_crashes_are_counted_to_their_limits() -> None:
    policy = Retry(max_attempts=3, max_crashes=2)
    assert [may_retry(policy, failed) for failed in (1, 2, 3, 4)] == [True, True, False, False]
    assert [may_retry_crash(policy, crashes) for crashes in (1, 2, 3)] == [True, False, False]
    assert not may_retry(Retry(max_attempts=1), 1)


def test_durations_may_be_text() -> None:
    assert Retry(first="2s", max="1h") == Retry(first=2.0, max=3600.0)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 10_001}, "max_attempts"),
        ({"backoff": "cubic"}, "exponential, quartic, list"),
        ({"backoff": "list"}, "delays"),
        ({"jitter": -0.1}, "jitter"),
        ({"jitter": 1.1}, "jitter"),
        ({"jitter": float("nan")}, "jitter"),
        ({"max_crashes": 0}, "max_crashes"),
        ({"first": -1}, "duration"),
        ({"first": "soon"}, "duration"),
        ({"max": float("inf")}, "duration"),
        ({"backoff": "list", "delays": (1, "x")}, "duration"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        Retry(**arguments)  # type: ignore[arg-type]
