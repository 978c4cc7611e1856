"""Arguments and results on their way through JSON: values that fit come back the same, others say why, briefly."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import InvalidPayload
from tailrace.sdk.function import Function, function
from tailrace.sdk.payload import MESSAGE_LENGTH, encode_arguments, encode_result


class Address(pydantic.BaseModel):
    street: str
    number: int


@function
async def send(to: str, times: int = 3) -> None: ...


@function
async def deliver(address: Address, at: datetime.datetime | None = None) -> None: ...


@function
async def raw(data: bytes) -> None: ...


@function
async def nothing() -> None: ...


@function
async def anything(first: Any = None, **others: int) -> None: ...


@given(st.text(), st.integers(-(2**63), 2**63))
def test_what_was_submitted_arrives(to: str, times: int) -> None:
    try:
        payload = encode_arguments(send, {"to": to, "times": times})
    except InvalidPayload:
        assert any("\ud800" <= letter <= "\udfff" for letter in to)
        return
    assert send.arguments.decode(payload) == {"to": to, "times": times}


def test_models_and_times_are_rebuilt() -> None:
    at = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
    payload = encode_arguments(deliver, {"address": Address(street="Mill Lane", number=1), "at": at})
    assert deliver.arguments.decode(payload) == {"address": Address(street="Mill Lane", number=1), "at": at}


def test_no_arguments_are_no_bytes() -> None:
    assert encode_arguments(nothing, {}) == b""
    assert nothing.arguments.decode(b"") == {}
    assert nothing.arguments.decode(b"{}") == {}
    assert encode_arguments(None, {}) == b""


def test_one_bytes_parameter_takes_the_payload_untouched() -> None:
    assert encode_arguments(raw, {"data": b"\xff\x00"}) == b"\xff\x00"
    assert raw.arguments.decode(b"\xff\x00") == {"data": b"\xff\x00"}
    with pytest.raises(InvalidPayload, match="data=bytes"):
        encode_arguments(raw, {"data": "text"})


def test_open_ended_functions_take_other_arguments() -> None:
    assert anything.arguments.decode(b'{"first": [1], "second": 2}') == {"first": [1], "second": 2}


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"not json", "send: the payload is not JSON"),
        (b"\xff", "send: the payload is not JSON"),
        (b"[]", "must be a JSON object of arguments, got"),
        (b"", "argument 'to' is missing"),
        (b'{"to": 5}', r"argument 'to': expected a valid string, got 5 \(int\)"),
        (b'{"to": "a", "times": "x"}', "argument 'times': expected a valid integer"),
        (b'{"to": "a", "time": 1}', "unknown argument 'time' \\(did you mean 'times'\\?\\)"),
    ],
)
def test_what_does_not_fit_says_which_argument_and_what_came(payload: bytes, says: str) -> None:
    with pytest.raises(InvalidPayload, match=says):
        send.arguments.decode(payload)


@given(st.binary(max_size=2000))
def test_any_bytes_either_fit_or_are_refused_briefly(payload: bytes) -> None:
    for target in (send, deliver, anything):
        _decode(target, payload)


def _decode(target: Function[..., Any], payload: bytes) -> None:
    try:
        target.arguments.decode(payload)
    except InvalidPayload as error:
        assert len(str(error)) <= MESSAGE_LENGTH


def test_a_long_payload_makes_no_long_message() -> None:
    with pytest.raises(InvalidPayload) as caught:
        send.arguments.decode(b'{"to": {"' + b"a" * 100_000 + b'": 1}, "' + b"b" * 100_000 + b'": 1}')
    assert len(str(caught.value)) <= MESSAGE_LENGTH


def test_a_submission_that_does_not_fit_is_refused_where_it_is_made() -> None:
    with pytest.raises(InvalidPayload, match="'to' is missing"):
        encode_arguments(send, {})


def test_results_are_json_and_none_is_nothing() -> None:
    assert encode_result(None) == b""
    assert encode_result({"a": [1, 2.5, None]}) == b'{"a":[1,2.5,null]}'
    assert encode_result(Address(street="x", number=1)) == b'{"street":"x","number":1}'
    assert encode_result({"NaN": "-Infinity"}) == b'{"NaN":"-Infinity"}'


@pytest.mark.parametrize("value", [math.nan, [1.0, -math.inf], {"a": {"NaN": math.inf}}])
def test_a_number_that_json_does_not_have_is_refused_as_a_return_value(value: object) -> None:
    with pytest.raises(InvalidPayload, match=r"NaN or infinity\): return None, a text or a finite number"):
        encode_result(value)


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize("value", [object(), lambda: 1, b"\xff", _circle(), {"a": object()}])
def test_a_result_that_is_not_serialisable_says_so(value: object) -> None:
    with pytest.raises(InvalidPayload, match=r"the return value cannot be written as JSON.*results=False"):
        encode_result(value)


def test_what_to_do_about_a_result_is_said_however_long_the_fault_is() -> None:
    with pytest.raises(InvalidPayload, match=r"with results=False; a redrive runs it once more$") as caught:
        encode_result(type("X" * 2 * MESSAGE_LENGTH, (), {})())
    assert len(str(caught.value)) <= MESSAGE_LENGTH
