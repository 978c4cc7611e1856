"""Workloads in columns are the same items as the same workloads one by one, and refused with the same words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.known_functions import KnownFunctions
from tailrace.gateway.submission import SubmissionRule
from tailrace.gateway.submission_columns import WorkloadColumns
from tailrace.model.errors import InvalidPayload, InvalidRequest, UnknownFunction, UserError
from tailrace.model.function_spec import FunctionSpec
from tailrace.stores.queue.queue import NewItem
from tailrace.wire.v1 import common_pb2
from tailrace.wire.v1 import gateway_pb2 as pb

NOW = 1_000_000.0
TOKEN = "ab" * 13
SCHEMA = '{"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"}'


def rule(**bounds: object) -> SubmissionRule:
    functions = KnownFunctions()
    functions.replace([FunctionSpec("index"), FunctionSpec("add", arguments=SCHEMA)])
    return SubmissionRule(GatewayConfig.model_validate(bounds), functions)


def form(function: str = "index", **said: object) -> pb.NewWorkload:
    return pb.NewWorkload(function=function, **said)  # type: ignore[arg-type]


def items(alike: pb.Alike, part: int = 1000, **bounds: object) -> list[NewItem]:
    columns = WorkloadColumns(rule(**bounds), alike, NOW)
    return [item for start in range(0, columns.count, part) for item in columns.items(start, start + part)]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=20)), min_size=1, max_size=30),
    st.sampled_from(["", TOKEN]),
    st.integers(1, 12),
)
def test_they_are_the_items_that_they_are_one_by_one(rows: list[tuple[int, bytes]], token: str, part: int) -> None:
    # Given workloads of several forms
    forms = [
        form(),
        form(priority=0, tenant="acme"),
        form(collection="nightly", delay=60.0),
        form(at=NOW + 60, expires_after=30.0),
        form(headers=[common_pb2.Header(name="a", value="b")]),
    ]
    single = []
    for place, (number, payload) in enumerate(rows):
        each = pb.NewWorkload(payload=payload, submission_id=f"{token}{place:06x}" if token else "")
        each.MergeFrom(forms[number])
        single.append(each)

    # When they come in columns, then their items are the same, in whatever parts they are read
    form_of, payloads = zip(*rows, strict=True)
    alike = pb.Alike(forms=forms, form_of=form_of, payloads=payloads, token=token)
    assert items(alike, part) == rule().items(single, NOW)
    if set(form_of) == {0}:
        assert items(pb.Alike(forms=forms[:1], payloads=payloads, token=token), part) == rule().items(single, NOW)


@pytest.mark.parametrize(
    ("alike", "error", "words"),
    [
        (pb.Alike(forms=[form("indx")], payloads=[b"{}"]), UnknownFunction, "did you mean 'index'"),
        (
            pb.Alike(forms=[form(), form("indx")], payloads=[b"{}"] * 3, form_of=[0, 0, 1]),
            UnknownFunction,
            "workload 2 of 3: .*'index'.*; none was accepted",
        ),
        (pb.Alike(forms=[form(delay=-1)], payloads=[b"{}"] * 2), InvalidRequest, "workload 0 of 2: the delay is -1"),
        (pb.Alike(forms=[form()], payloads=[b"", b"x" * 11]), InvalidPayload, "workload 1 of 2: index: .* at most 10"),
        (pb.Alike(forms=[form("add")], payloads=[b'{"a":1}', b'{"a":""}']), InvalidPayload, "workload 1 of 2: .*'a'"),
        (pb.Alike(forms=[form()], payloads=[b"{}"] * 8), InvalidRequest, "8 workloads in one request: at most 7"),
        (pb.Alike(forms=[form(), form()], payloads=[b""]), InvalidRequest, "1 workloads of 2 forms"),
        (pb.Alike(payloads=[b""]), InvalidRequest, "1 workloads of 0 forms"),
        (pb.Alike(forms=[form()], payloads=[b""] * 2, form_of=[0]), InvalidRequest, "the form of each workload"),
        (pb.Alike(forms=[form()], payloads=[b""] * 2, form_of=[0, 1]), InvalidRequest, "of form 1: there are 1"),
        (pb.Alike(forms=[form(key="k")], payloads=[b""]), InvalidRequest, "has no payload, key"),
        (pb.Alike(forms=[form(payload=b"x")], payloads=[b""]), InvalidRequest, "has no payload, key"),
        (pb.Alike(forms=[form()], payloads=[b""], token="no hex, surely"), InvalidRequest, "hexadecimal"),
    ],
)
def test_what_is_wrong_refuses_all_and_names_the_first(alike: pb.Alike, error: type[UserError], words: str) -> None:
    with pytest.raises(error, match=words):
        items(alike, 2, max_payload=10, max_batch=7)
