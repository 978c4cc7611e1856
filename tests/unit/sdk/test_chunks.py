"""Chunks of `submit_many`: columns where calls have much in common, else each by itself."""

from tailrace.sdk.call import Call
from tailrace.sdk.chunks import FORMS, request
from tailrace.wire.v1 import gateway_pb2 as pb


def test_what_calls_have_in_common_is_said_once() -> None:
    said = request([Call("index", number=number, tenant="acme") for number in range(3)], resend=True).alike
    assert [(form.function, form.tenant, form.payload, form.submission_id) for form in said.forms] == [
        ("index", "acme", b"", "")
    ]
    assert [*said.payloads] == [b'{"number":0}', b'{"number":1}', b'{"number":2}']
    assert [*said.form_of] == [] and len(said.token) == 26


def test_each_says_which_form_is_its_own() -> None:
    # Given calls that differ in one option each
    options = [{}, {"priority": "interactive"}, {"collection": "c"}, {"tenant": "t"}, {"delay": 1}]
    more = [{"expires_after": 1}, {"headers": {"a": "b"}}, {"at": 12.0}, {"on_done": "tell"}]
    calls = [Call("index", **each) for each in (*options, *more, {})]  # type: ignore[arg-type]

    # When they are said, then each has a form, and the same ones the same
    said = request(calls, resend=False).alike
    assert [*said.form_of] == [*range(9), 0]
    assert said.forms[1].priority == 0 and said.forms[4].delay == 1
    assert said.forms[7].at == 12.0 and said.forms[8].on_done == "tell"
    assert said.token == ""


def test_what_is_said_of_single_ones_is_no_column() -> None:
    for calls in (
        [Call("index")],
        [Call("index"), Call("index", key="k")],
        [Call("index"), Call("index", dedupe_key="k")],
        [Call("index", tenant=f"t{number}") for number in range(FORMS + 1)],
    ):
        said = request(calls, resend=True)
        assert not said.HasField("alike") and len(said.workloads) == len(calls)
    assert request([Call("index", tenant=f"t{number}") for number in range(FORMS)], resend=True).HasField("alike")


def test_without_resending_there_are_no_tokens() -> None:
    assert request([Call("index", key="k")] * 2, resend=False) == pb.SubmitRequest(
        workloads=[pb.NewWorkload(function="index", key="k")] * 2
    )
