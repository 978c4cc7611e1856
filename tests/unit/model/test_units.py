"""Durations and sizes as people write them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import InvalidRequest
from tailrace.model.units import LONGEST, duration_text, per_second, seconds, size, size_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30s", 30.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        ("5us", 5e-6),
        ("2d", 172_800.0),
        ("1w", 604_800.0),
        (" 5M ", 300.0),
        ("2.5", 2.5),
        (2.5, 2.5),
        (0, 0.0),
    ],
)
def test_a_duration_is_read(text: float | str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "value",
    [LONGEST * 1.01, 1e300, pytest.param(10**5000, id="int"), "9" * 400, "9" * 400 + "w", "36526d"],
)
def test_what_no_store_could_keep_is_refused(value: float | str) -> None:
    with pytest.raises(InvalidRequest, match="duration"):
        seconds(value)


def test_a_library_s_number_is_an_exact_one() -> None:
    class Number(float): ...

    assert type(seconds(Number(3))) is float
    assert seconds(LONGEST) == LONGEST


@pytest.mark.parametrize("value", ["", "s", "5 s", "-1s", "1y", "1h 30m", "5x", "nan", "inf", -1, True, None, b"5s"])
def test_what_is_no_duration_is_refused_and_shown(value: object) -> None:
    with pytest.raises(InvalidRequest, match="is not a duration"):
        seconds(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.001])
def test_numbers_that_are_no_time_are_refused(value: float) -> None:
    with pytest.raises(InvalidRequest, match="zero or more"):
        seconds(value)


@given(st.integers(0, 10**11))
def test_a_duration_written_is_read_back_to_the_millisecond(milliseconds: int) -> None:
    assert seconds(duration_text(milliseconds / 1000)) == pytest.approx(milliseconds / 1000, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16MiB", 16 << 20),
        ("64 KiB", 64 << 10),
        ("1gb", 10**9),
        ("1.5KiB", 1536),
        ("4096", 4096),
        ("7b", 7),
        (4096, 4096),
        (0, 0),
    ],
)
def test_a_size_is_read(text: int | str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize("value", ["", "MiB", "-1", "5 parsecs", "1 0", -1, True, None, 1.5])
def test_what_is_no_size_is_refused_and_shown(value: object) -> None:
    with pytest.raises(InvalidRequest, match="is not a size"):
        size(value)  # type: ignore[arg-type]


@given(st.text(max_size=12))
def test_any_text_is_a_value_or_a_refusal(text: str) -> None:
    for read in (seconds, size):
        with contextlib.suppress(InvalidRequest):
            assert read(text) >= 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (812 << 20, "812 MiB"), (1 << 30, "1 GiB"), (3 << 40, "3 TiB")],
)
def test_a_size_is_told_in_three_digits(value: int, text: str) -> None:
    assert size_text(value) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (5, 5.0),
        (0.5, 0.5),
        ("5", 5.0),
        ("500/min", 500 / 60),
        ("90_000 / Minute", 1500.0),
        ("36/h", 0.01),
        ("1/day", 1 / 86400),
    ],
)
def test_a_rate_is_read(text: float | str, value: float) -> None:
    assert per_second(text) == value


@pytest.mark.parametrize(
    "value", [True, None, "", "/min", "5/", "-5", "5/week", "1e5", "nan", float("nan"), float("inf"), -1, [5], 10**400]
)
def test_what_is_no_rate_is_refused_and_shown(value: object) -> None:
    with pytest.raises(InvalidRequest, match='is not a rate: expected a number per second, or text like "500/min"'):
        per_second(value)  # type: ignore[arg-type]
