"""Submissions: every bad input is refused whole, naming the workload and the value that was expected."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.known_functions import KnownFunctions
from tailrace.gateway.submission import SubmissionRule
from tailrace.model.errors import InvalidPayload, InvalidRequest, UnknownFunction, UserError
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.priority import Priority
from tailrace.model.workload import Kind
from tailrace.stores.queue.admission import SUBMISSION_PREFIX
from tailrace.wire.gateway_messages import new_workload
from tailrace.wire.v1 import gateway_pb2 as pb

NOW = 1_000_000.0
DAY = 86400.0


def rule(**bounds: object) -> SubmissionRule:
    functions = KnownFunctions()
    functions.replace([FunctionSpec("send_email", priority=Priority.INTERACTIVE), FunctionSpec("index")])
    return SubmissionRule(GatewayConfig.model_validate(bounds), functions)


def test_a_plain_workload_gets_its_function_s_priority_and_is_due_now() -> None:
    [item] = rule().items([new_workload("send_email", b"{}")], NOW)
    assert item.kind == Kind("send_email", int(Priority.INTERACTIVE))
    assert (item.due, item.expires_at, item.dedupe_key, item.key, item.headers) == (0.0, 0.0, "", "", ())


@given(
    st.binary(max_size=300),
    st.sampled_from(["", "ab" * 8, "0" * 64]),
    st.fixed_dictionaries(
        {},
        optional={
            "priority": st.integers(0, 3),
            "collection": st.sampled_from(["", "nightly"]),
            "tenant": st.sampled_from(["", "acme"]),
            "key": st.sampled_from(["", "k"]),
            "delay": st.sampled_from([0.0, 60.0]),
            "at": st.sampled_from([0.0, NOW + 60]),
            "dedupe_key": st.sampled_from(["", "once"]),
            "expires_after": st.sampled_from([0.0, 30.0]),
        },
    ),
)
def test_whatever_a_submission_says_beside_its_payload_is_seen(
    payload: bytes, token: str, said: dict[str, object]
) -> None:
    if said.get("delay") and "at" in said:
        del said["at"]
    workload = pb.NewWorkload(function="index", payload=payload, submission_id=token, **said)  # type: ignore[arg-type]
    [item] = rule().items([workload], NOW)
    priority = said.get("priority", int(FunctionSpec("index").priority))
    assert item.kind == Kind("index", priority, said.get("collection", ""), said.get("tenant", ""))  # type: ignore[arg-type]
    assert (item.payload, item.key) == (payload, said.get("key", ""))
    due = NOW + 60 if said.get("delay") or said.get("at") else 0.0
    assert item.due == due
    assert item.expires_at == (0.0 if "expires_after" not in said else (due or NOW) + said["expires_after"])  # type: ignore[operator]
    assert item.dedupe_key == (said.get("dedupe_key") or (SUBMISSION_PREFIX + token if token else ""))


def test_a_function_whose_priority_changed_is_submitted_with_the_new_one() -> None:
    functions = KnownFunctions()
    taken = SubmissionRule(GatewayConfig(), functions)
    for priority in (Priority.INTERACTIVE, Priority.REPORTING):
        functions.replace([FunctionSpec("index", priority=priority)])
        assert taken.items([pb.NewWorkload(function="index")], NOW)[0].kind == Kind("index", int(priority))


def test_everything_a_submission_says_reaches_the_queue() -> None:
    # Given a submission that says everything
    workload = new_workload(
        "index",
        b"\x00\xff",
        priority=0,
        collection="nightly",
        tenant="acme",
        key="k",
        headers=(("trace", "1"),),
        delay=60.0,
        dedupe_key="once",
        expires_after=30.0,
    )
    # When it is taken
    [item] = rule().items([workload], NOW)
    # Then the item has it all, and its deadline counts from when it is due
    assert item.kind == Kind("index", 0, "nightly", "acme")
    assert (item.payload, item.key, item.headers, item.dedupe_key) == (b"\x00\xff", "k", (("trace", "1"),), "once")
    assert (item.due, item.expires_at) == (NOW + 60, NOW + 90)


@pytest.mark.parametrize(
    ("workload", "error", "words"),
    [
        (new_workload("send_emial", b""), UnknownFunction, ["send_emial", "did you mean 'send_email'"]),
        (new_workload("", b""), UnknownFunction, ["''"]),
        (new_workload("qqqqq", b""), UnknownFunction, ["index", "send_email", "tailrace worker"]),
        (
            new_workload("index", b"x" * 101),
            InvalidPayload,
            ["101 bytes", "at most 100", "tailrace.Reference(url, key)"],
        ),
        (new_workload("index", b"", priority=4), InvalidRequest, ["priority", "4"]),
        (new_workload("index", b"", collection="two words"), InvalidRequest, ["collection", "two words"]),
        (new_workload("index", b"", tenant="t" * 201), InvalidRequest, ["tenant"]),
        (new_workload("index", b"", key="k" * 201), InvalidRequest, ["key", "201"]),
        (new_workload("index", b"", dedupe_key="k" * 201), InvalidRequest, ["dedupe_key", "201"]),
        (new_workload("index", b"", dedupe_key="k\0"), InvalidRequest, ["dedupe_key", "NUL"]),
        (new_workload("index", b"", key="\0"), InvalidRequest, ["key", "NUL"]),
        (new_workload("index", b"", dedupe_key=SUBMISSION_PREFIX + "x"), InvalidRequest, ["dedupe_key"]),
        (new_workload("index", b"", delay=-1.0), InvalidRequest, ["-1", "zero or more"]),
        (new_workload("index", b"", delay=math.nan), InvalidRequest, ["nan"]),
        (new_workload("index", b"", delay=math.inf), InvalidRequest, ["inf"]),
        (new_workload("index", b"", delay=31 * DAY), InvalidRequest, ["31d", "30d", "max_delay"]),
        (new_workload("index", b"", at=NOW + 31 * DAY), InvalidRequest, ["31d", "30d"]),
        (new_workload("index", b"", at=math.nan), InvalidRequest, ["at is"]),
        (new_workload("index", b"", at=NOW, delay=1.0), InvalidRequest, ["both"]),
        (new_workload("index", b"", expires_after=-1.0), InvalidRequest, ["expires_after"]),
        (new_workload("index", b"", expires_after=math.inf), InvalidRequest, ["expires_after"]),
        (new_workload("index", b"", headers=(("n", "v" * 9000),)), InvalidRequest, ["headers", "9001"]),
        (pb.NewWorkload(function="index", submission_id="not hex"), InvalidRequest, ["submission_id"]),
    ],
)
def test_bad_input_is_refused_and_says_what_was_expected(
    workload: pb.NewWorkload, error: type[UserError], words: list[str]
) -> None:
    # Given a bad workload between two good ones
    good = new_workload("index", b"{}")
    subject = rule(max_payload=100)
    # When the three are submitted, then all are refused, and the message says which and why
    with pytest.raises(error, match=r"workload 1 of 3: .*; none was accepted") as caught:
        subject.items([good, workload, good], NOW)
    for word in words:
        assert word in str(caught.value)
    # And alone it needs no index
    with pytest.raises(error) as caught:
        subject.items([workload], NOW)
    assert "workload" not in str(caught.value).partition(":")[0]


def test_more_than_a_batch_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="11 workloads in one request: at most 10"):
        rule(max_batch=10).items([new_workload("index", b"")] * 11, NOW)


def test_with_no_function_registered_the_message_says_how_to_register_one() -> None:
    subject = SubmissionRule(GatewayConfig(), KnownFunctions())
    with pytest.raises(UnknownFunction, match=r"none is yet.*tailrace worker"):
        subject.items([new_workload("index", b"")], NOW)


def test_a_moment_that_has_passed_is_now() -> None:
    [item] = rule().items([new_workload("index", b"", at=NOW - 5)], NOW)
    assert item.due == 0.0


def test_a_submission_id_is_kept_as_a_dedupe_key_of_the_platform_s_own() -> None:
    [item] = rule().items([pb.NewWorkload(function="index", submission_id="0" * 32)], NOW)
    assert item.dedupe_key == SUBMISSION_PREFIX + "0" * 32


def test_a_user_s_dedupe_key_goes_before_the_submission_id() -> None:
    [item] = rule().items([pb.NewWorkload(function="index", submission_id="0" * 32, dedupe_key="mine")], NOW)
    assert item.dedupe_key == "mine"


@given(
    delay=st.floats(),
    at=st.none() | st.floats(),
    expires_after=st.none() | st.floats(),
    priority=st.none() | st.integers(0, 2**32 - 1),
    collection=st.text(),
    key=st.text(max_size=300),
)
def test_whatever_comes_is_taken_within_bounds_or_refused_as_the_user_s_error(
    delay: float, at: float | None, expires_after: float | None, priority: int | None, collection: str, key: str
) -> None:
    workload = new_workload(
        "index",
        b"",
        delay=delay,
        at=at,
        expires_after=expires_after,
        priority=priority,
        collection=collection,
        key=key,
    )
    try:
        [item] = rule().items([workload], NOW)
    except UserError as error:
        assert str(error)
        return
    assert item.due == 0.0 or NOW <= item.due <= NOW + 30 * DAY
    assert item.expires_at == 0.0 or item.expires_at >= NOW
    assert 0 <= item.kind.priority <= 3 and len(item.key) <= 200
