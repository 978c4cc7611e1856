"""One submission, checked when it is made."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

import tailrace
from tailrace.model.errors import InvalidPayload, InvalidRequest, UserError
from tailrace.model.reference import REFERENCE, decode


@tailrace.function(collection="welcome")
async def send_email(to: str, body: str, copies: int = 1, *, delay: int = 0) -> None: ...


@tailrace.function
async def raw(data: bytes) -> None: ...


class Denying(str):
    """A text that says of itself that it is another, and equals everything."""

    __hash__ = str.__hash__

    def __str__(self) -> str:
        return "another"

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def test_arguments_by_place_and_by_name_become_one_json_object() -> None:
    call = tailrace.Call(send_email, "ann@example.org", body="hi", copies=2)
    assert json.loads(call.payload) == {"to": "ann@example.org", "body": "hi", "copies": 2}
    assert (call.function, call.collection) == ("send_email", "welcome")


def test_by_name_only_nothing_is_known_of_the_arguments() -> None:
    call = tailrace.Call("send_email", to=7, delay="5m", priority="interactive")
    assert (json.loads(call.payload), call.delay, call.priority, call.collection) == ({"to": 7}, 300.0, 0, "")


def test_an_argument_whose_name_is_an_option_s_goes_into_arguments() -> None:
    call = tailrace.Call(send_email, "ann", "hi", delay="1s", arguments={"delay": 3})
    assert json.loads(call.payload) == {"to": "ann", "body": "hi", "delay": 3}
    assert call.delay == 1.0


def test_an_option_that_might_be_an_argument_is_asked_about() -> None:
    # Given a function with a parameter `delay`, when `delay` is given and nothing says which one is meant
    with pytest.raises(InvalidRequest, match=r"both an argument of send_email and an option.*arguments=\{'delay'"):
        tailrace.Call(send_email, "ann", "hi", delay=3)
    # Then `arguments` says it
    call = tailrace.Call(send_email, "ann", "hi", delay=3, arguments={})
    assert (json.loads(call.payload), call.delay) == ({"to": "ann", "body": "hi"}, 3.0)
    assert tailrace.Call(send_email, "ann", "hi", key="k").key == "k"


def test_a_function_of_bytes_gets_them_untouched() -> None:
    assert tailrace.Call(raw, b"\x00\xff").payload == b"\x00\xff"


REPORT = tailrace.Reference("s3://uploads", "report.csv")


@pytest.mark.parametrize(("function", "args", "named"), [(raw, (REPORT,), {}), ("raw", (), {"data": REPORT})])
def test_a_reference_travels_for_what_is_too_large(function: Any, args: Any, named: Any) -> None:
    call = tailrace.Call(function, *args, **named, headers={"trace": "1"})
    assert decode(call.payload) == REPORT
    assert call.headers == (("trace", "1"), REFERENCE)


@pytest.mark.parametrize(("function", "given"), [("raw", {"data": REPORT, "more": 1}), (send_email, {"to": REPORT})])
def test_a_reference_is_a_whole_payload_or_refused(function: Any, given: Any) -> None:
    with pytest.raises(InvalidPayload, match=r"a Reference stands for a whole payload.*takes bytes"):
        tailrace.Call(function, **given)


def test_no_arguments_are_no_bytes() -> None:
    assert tailrace.Call("tick").payload == b""


def test_a_moment_is_a_datetime_or_seconds() -> None:
    assert tailrace.Call("tick", at=datetime(2030, 1, 1, tzinfo=UTC)).at == 1893456000.0
    assert tailrace.Call("tick", at=5).at == 5.0


def test_who_is_told_of_the_end_is_a_function_or_an_address() -> None:
    address = "https://example.org/" + "x" * 300
    for given, said in ((send_email, "send_email"), ("tell", "tell"), (address, address), ("", "")):
        assert tailrace.Call("tick", on_done=given).on_done == said
    assert tailrace.Call("tick", on_done=Denying("tell")).on_done == "tell"


def test_headers_are_pairs_of_text() -> None:
    assert tailrace.Call("tick", headers={"trace": "1"}).headers == (("trace", "1"),)


@pytest.mark.parametrize(
    ("args", "options", "error", "word"),
    [
        ((send_email,), {"to": "ann", "body": 3}, InvalidPayload, "'body'"),
        ((send_email,), {"to": "ann"}, InvalidPayload, "'body' is missing"),
        ((send_email,), {"to": "ann", "bdy": "hi"}, InvalidPayload, "body"),
        ((send_email, 1, 2, 3, 4), {}, InvalidPayload, "takes 3 positional"),
        ((send_email, "ann"), {"to": "bob", "body": "hi"}, InvalidPayload, "'to' is given twice"),
        ((send_email,), {"to": "ann", "arguments": {"to": "bob"}}, InvalidPayload, "'to' is given twice"),
        ((send_email,), {"to": "ann", "body": object()}, InvalidPayload, "JSON"),
        (("send_email", "ann"), {}, InvalidRequest, "by its name"),
        ((print,), {}, InvalidRequest, "tailrace.function"),
        (("tick",), {"delay": -1}, InvalidRequest, "delay: -1"),
        (("tick",), {"delay": "soon"}, InvalidRequest, "delay: 'soon'"),
        (("tick",), {"delay": 1, "at": 1}, InvalidRequest, "not both"),
        (("tick",), {"at": "tomorrow"}, InvalidRequest, "at: 'tomorrow'"),
        (("tick",), {"priority": "urgent"}, InvalidRequest, "interactive"),
        (("tick",), {"tenant": 7}, InvalidRequest, "tenant: 7"),
        (("tick",), {"key": "k" * 201}, InvalidRequest, "key: "),
        (("tick",), {"key": "\ud800"}, InvalidRequest, "key: "),
        (("tick",), {"collection": 5}, InvalidRequest, "collection: 5"),
        (("\ud800",), {}, InvalidRequest, "function: "),
        (("tick",), {"data": "x" * (4 << 20)}, InvalidPayload, "at most 4194304"),
        (("tick",), {"data": "\ud800"}, InvalidPayload, "JSON"),
        (("tick",), {"headers": {"a": 1}}, InvalidRequest, "headers: 'a'"),
        (("tick",), {"expires_after": float("nan")}, InvalidRequest, "expires_after: nan"),
        (("tick",), {"on_done": 5}, InvalidRequest, "cannot make on_done of 5: expected a function"),
        (("tick",), {"on_done": None}, InvalidRequest, "cannot make on_done of None: expected a function"),
        (("tick",), {"on_done": "\ud800"}, InvalidRequest, "on_done: "),
        (("tick",), {"on_done": "https://" + "x" * 2000}, InvalidRequest, "expected text of at most 2000 characters"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    args: tuple[Any, ...], options: dict[str, Any], error: type[UserError], word: str
) -> None:
    with pytest.raises(error) as caught:
        tailrace.Call(*args, **options)
    assert word in str(caught.value)
