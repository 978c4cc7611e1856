"""Expiry: when an item expires, and which of the held ones have."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.deadlines import Deadlines
from tailrace.tailers.rules.expiry import Expiry, expires_at, expiry_of, is_over


@pytest.mark.parametrize(
    ("value", "expiry"),
    [
        ("90s", Expiry(0.0, 90.0)),
        ("1h30m", Expiry(0.0, 5400.0)),
        ("1767225600", Expiry(1767225600.0)),
        (1767225600, Expiry(1767225600.0)),
        (1767225600500, Expiry(1767225600.5)),
        ("2026-01-01T00:00:00Z", Expiry(1767225600.0)),
        ("2026-01-01T01:00:00+01:00", Expiry(1767225600.0)),
        ("2026-01-01T00:00:00", None),  # of which zone?
        ("soon", None),
        ("", None),
        ("nan", None),
        (math.inf, None),
        (-1, None),
        (0, None),
        (1e300, None),
        (True, None),
        ({"at": 1}, None),
    ],
)
def test_a_moment_or_a_time_after_the_record(value, expiry):
    assert expiry_of(value) == expiry


@given(st.text() | st.integers() | st.floats() | st.none() | st.lists(st.integers()))
def test_whatever_a_record_says_is_answered(value):
    expiry = expiry_of(value)
    assert expiry is None or expires_at(expiry, 1000.0) > 0


def test_a_record_without_a_time_of_its_own_expires_only_at_a_moment():
    assert expires_at(Expiry(0.0, 60.0), 1000.0) == 1060.0
    assert expires_at(Expiry(0.0, 60.0), 0.0) == expires_at(Expiry(0.0, 60.0), -0.001) == 0.0
    assert expires_at(Expiry(5.0), 0.0) == 5.0
    assert is_over(5.0, 5.0) and not is_over(5.0, 4.9) and not is_over(0.0, 1e12)


@given(
    st.lists(st.tuples(st.sampled_from(["keep", "forget", "over"]), st.integers(0, 9), st.integers(1, 20)), max_size=80)
)
def test_each_is_over_once_and_at_its_time(steps):
    deadlines, model, now = Deadlines(), {}, 0.0
    for step, position, number in steps:
        if step == "keep":
            deadlines.keep(position, now + number)
            model[position] = now + number
        elif step == "forget":
            deadlines.forget([position])
            model.pop(position, None)
        else:
            now += number
            over = deadlines.over(now, 100)
            assert sorted(over) == sorted(each for each, at in model.items() if at <= now) and len(set(over)) == len(
                over
            )
            model = {each: at for each, at in model.items() if at > now}
        assert deadlines.next_time == min(model.values(), default=None) and len(deadlines) == len(model)
