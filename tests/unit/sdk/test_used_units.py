"""Amounts that a run says it used (`ctx.used`), and a function's declarations of its items."""

from __future__ import annotations

import math
from fractions import Fraction
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace import Context
from tailrace.model.errors import DeclarationError, InvalidRequest
from tailrace.model.function_spec import spec_from_dict, spec_to_dict
from tailrace.model.unit_rate import MOST_SAID, MOST_USED, UnitSource
from tailrace.sdk.function import function


class Word(str):
    """A text of another class, as a template library makes it."""

    __slots__ = ()


class Rude:
    """A thing whose number raises."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_several_calls_add_up_by_downstream_and_unit() -> None:
    ctx = Context()
    assert ctx.amounts == ()
    ctx.used("openai", tokens=812)
    ctx.used("openai", tokens=0.5, rows=2)
    ctx.used(rows=3)
    assert sorted(ctx.amounts) == [("", "rows", 3.0), ("openai", "rows", 2.0), ("openai", "tokens", 812.5)]


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        (math.nan, "expected how much was used, 0 to 1e\\+12"),
        (-1, "expected how much"),
        (math.inf, "expected how much"),
        (10**400, "expected how much"),
        (2 * MOST_USED, "expected how much"),
        (True, "bool, not a number"),
        (False, "bool, not a number"),
        (None, "NoneType, not a number"),
        ("812", "str, not a number"),
        (b"812", "bytes, not a number"),
        (1j, "complex, not a number"),
        ([1], "list, not a number"),
        (Rude(), "Rude, not a number"),
    ],
)
def test_what_is_no_amount_is_refused_where_it_is_said_and_notes_nothing(amount: Any, says: str) -> None:
    ctx = Context()
    ctx.used("openai", tokens=1)
    with pytest.raises(InvalidRequest, match=says):
        ctx.used("openai", rows=5, tokens=amount)
    assert ctx.amounts == (("openai", "tokens", 1.0),)


@pytest.mark.parametrize(
    ("downstream", "units"),
    [
        (None, {"tokens": 1}),
        (5, {"tokens": 1}),
        ("a b", {"tokens": 1}),
        ("\ud800", {"tokens": 1}),
        ("a\0b", {"tokens": 1}),
        ("x" * 100_000, {"tokens": 1}),
        ("openai", {"\udcff": 1}),
        ("openai", {"a#b": 1}),
        ("openai", {"": 1}),
        ("openai", {"x" * 100_000: 1}),
        ("openai", {}),
    ],
)
def test_what_is_no_name_is_refused(downstream: Any, units: dict[str, Any]) -> None:
    ctx = Context()
    with pytest.raises(InvalidRequest) as found:
        ctx.used(downstream, **units)
    assert len(str(found.value)) < 600
    str(found.value).encode()
    assert ctx.amounts == ()


def test_texts_and_numbers_of_other_classes_become_plain_ones() -> None:
    ctx = Context()
    ctx.used(Word("openai"), **{Word("tokens"): Fraction(5, 2)})  # type: ignore[arg-type]
    [(downstream, unit, amount)] = ctx.amounts
    assert (type(downstream), type(unit), type(amount), amount) == (str, str, float, 2.5)


def test_a_run_speaks_of_few_units_and_its_sums_stay_numbers() -> None:
    ctx = Context()
    for number in range(MOST_SAID):
        ctx.used("openai", **{f"u{number}": MOST_USED})
    with pytest.raises(InvalidRequest, match="at most 16"):
        ctx.used("openai", one_more=1)
    ctx.used("openai", u0=MOST_USED)
    assert len(ctx.amounts) == MOST_SAID
    assert {amount for _, _, amount in ctx.amounts} == {MOST_USED}


def test_threads_of_one_run_lose_nothing() -> None:
    ctx = Context()

    def say() -> None:
        for _ in range(2_000):
            ctx.used("openai", tokens=1)

    threads = [Thread(target=say) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ctx.amounts == (("openai", "tokens", 8_000.0),)


@given(st.text() | st.binary() | st.none() | st.integers(), st.dictionaries(st.text(), st.floats() | st.integers()))
def test_whatever_is_said_is_refused_or_can_be_told(downstream: Any, units: dict[str, Any]) -> None:
    ctx = Context()
    try:
        ctx.used(downstream, **units)
    except InvalidRequest:
        assert ctx.amounts == ()
    for of, unit, amount in ctx.amounts:
        (of + unit).encode()
        assert 0 <= amount <= MOST_USED


def test_a_function_declares_where_estimates_come_from() -> None:
    @function(
        downstreams=["openai"],
        units={"tokens": {"field": "options.max_tokens", "default": 500}, "rows": 3, "bytes": {"header": "size"}},
    )
    async def ask() -> None: ...

    assert ask.spec.units == (
        UnitSource("tokens", 500, field="options.max_tokens"),
        UnitSource("rows", 3),
        UnitSource("bytes", header="size"),
    )
    assert spec_from_dict(spec_to_dict(ask.spec)) == ask.spec


@pytest.mark.parametrize(
    "units",
    [
        5,
        {"a b": 1},
        {"tokens": -1},
        {"tokens": math.nan},
        {"tokens": True},
        {"tokens": "500"},
        {"tokens": None},
        {"tokens": {}},
        {"tokens": {"field": "a", "header": "b"}},
        {"tokens": {"feild": "a"}},
        {"tokens": {"field": 5}},
        {"tokens": {"field": "a", "default": "x"}},
        {f"u{number}": 1 for number in range(9)},
    ],
)
def test_what_cannot_be_an_estimate_is_not_declared(units: Any) -> None:
    with pytest.raises(DeclarationError, match="unit"):

        @function(units=units)
        async def ask() -> None: ...
