"""The front door's check of arguments: it names arguments that do not fit, and asks for no more than the worker
does."""

from __future__ import annotations

import datetime
import enum
import json
from dataclasses import replace
from typing import Annotated, Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace
from tailrace.gateway.argument_check import ArgumentCheck, is_schema
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.known_functions import KnownFunctions
from tailrace.gateway.submission import SubmissionRule
from tailrace.model.errors import InvalidPayload
from tailrace.model.function_spec import FunctionSpec, spec_from_dict, spec_to_dict
from tailrace.sdk.function import Function
from tailrace.wire.gateway_messages import new_workload


class Address(pydantic.BaseModel):
    street: str
    number: int = 1


class TwoNames(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    street: str = pydantic.Field(alias="Street")


class Chosen(pydantic.BaseModel):
    street: str = pydantic.Field(validation_alias=pydantic.AliasChoices("street", "road"))


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Node(pydantic.BaseModel):
    below: list[Node] = []


Loose = Annotated[int, pydantic.BeforeValidator(lambda value: 0 if value == "none" else value)]


@tailrace.function(owner="the mail team")
async def everything(
    a: int,
    b: str = "",
    where: Address | None = None,
    many: list[Annotated[int, pydantic.Field(ge=1)]] = [],  # noqa: B006
    colour: Colour = Colour.RED,
    when: datetime.datetime | None = None,
    by_name: dict[str, Address] = {},  # noqa: B006
    loose: Loose = 0,
    two: TwoNames | None = None,
    chosen: Chosen | None = None,
    pair: tuple[int, str] = (1, ""),
    tree: Node | None = None,
    anything: Any = None,
    ratio: float = 1.0,
    sure: bool = False,
) -> None: ...


SPEC = everything.announced()


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "argument 'a' is missing"),
        (b'{"a": "x"}', "argument 'a': expected a valid integer"),
        (b'{"a": 1, "c": 2}', "unknown argument 'c'"),
        (b'{"a": 1, "wher": {}}', r"unknown argument 'wher' \(did you mean 'where'\?\)"),
        (b'{"a": 1, "where": {"number": 2}}', "argument 'where.street' is missing"),
        (b'{"a": 1, "many": [1, 0]}', "argument 'many.1': expected greater than or equal to 1"),
        (b'{"a": 1, "colour": "green"}', "argument 'colour': expected 'red' or 'blue'"),
        (b'{"a": 1, "by_name": {"x": {"street": 5}}}', "argument 'by_name.x.street': expected a valid string"),
        (b"[1]", "must be a JSON object of arguments"),
        (b"not json", "the payload is not JSON"),
    ],
)
def test_a_refusal_names_the_argument_and_the_owner(payload: bytes, words: str) -> None:
    with pytest.raises(InvalidPayload, match=words) as caught:
        ArgumentCheck(SPEC).check(payload)
    assert str(caught.value).endswith("(owner: the mail team)")


@pytest.mark.parametrize(
    "payload",
    [
        {"a": "1", "ratio": "0.5", "sure": "yes"},
        {"a": 1, "when": 5, "loose": "none", "two": {"street": "x"}, "chosen": {"road": "y"}, "pair": [1, "z"]},
        {"a": 1, "where": {"street": "x", "more": 1}, "tree": {"below": [{"below": []}]}, "anything": [{}]},
        {"a": 1, "where": None, "by_name": {"k": {"street": "s", "number": "7"}}, "colour": "blue"},
    ],
)
def test_what_the_worker_takes_is_taken(payload: dict[str, Any]) -> None:
    raw = json.dumps(payload).encode()
    everything.arguments.decode(raw)
    ArgumentCheck(SPEC).check(raw)


scalars = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2), st.sampled_from(["", "1", "red"]))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["street", "Street", "road", "number", "below", "k"]), inner, max_size=2)
    ),
    max_leaves=4,
)
NAMES = [*everything.parameters, "unknown"]


@given(st.dictionaries(st.sampled_from(NAMES), values, max_size=4), st.integers(0, 3))
def test_nothing_is_refused_that_the_worker_would_take(payload: dict[str, Any], a: int) -> None:
    raw = json.dumps({"a": a, **payload}).encode()
    try:
        everything.arguments.decode(raw)
    except InvalidPayload:
        return
    ArgumentCheck(SPEC).check(raw)


def test_payloads_of_either_version_are_taken_while_both_may_run() -> None:
    @tailrace.function(name="f")
    async def before(a: int) -> None: ...

    @tailrace.function(name="f")
    async def after(b: int) -> None: ...

    def spec(function: Function[..., Any]) -> FunctionSpec:
        return function.announced()

    check = ArgumentCheck(replace(spec(after), former=(spec(before).arguments,)))
    check.check(b'{"a": 1}')
    check.check(b'{"b": 1}')
    with pytest.raises(InvalidPayload, match="'b' is missing"):
        check.check(b"{}")


def test_a_function_that_takes_bytes_or_announces_no_schema_takes_anything() -> None:
    @tailrace.function
    def thumbnail(image: bytes) -> None: ...

    assert thumbnail.announced().arguments == ""
    ArgumentCheck(thumbnail.announced()).check(b"\xff")
    ArgumentCheck(FunctionSpec("f")).check(b"not json")


def test_what_is_no_schema_is_known() -> None:
    assert is_schema(SPEC.arguments)
    assert not is_schema("nonsense")
    assert not is_schema('{"$ref": "#/$defs/nobody"}')


def test_the_registry_keeps_it() -> None:
    spec = replace(SPEC, former=("{}",))
    assert spec_from_dict(json.loads(json.dumps(spec_to_dict(spec)))) == spec


def test_a_submission_by_name_is_refused_before_it_is_stored() -> None:
    functions = KnownFunctions()
    functions.replace([SPEC])
    rule = SubmissionRule(GatewayConfig(), functions)
    with pytest.raises(InvalidPayload, match="workload 1 of 2: everything: argument 'a' is missing"):
        rule.items([new_workload("everything", b'{"a":1}'), new_workload("everything", b"{}")], 0.0)
    # And after another version came, its own schema counts
    functions.replace([replace(SPEC, arguments="")])
    rule.items([new_workload("everything", b"{}")], 0.0)
