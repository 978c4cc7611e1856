"""Callbacks of ends: a function as far as it can be, an address where callbacks are configured."""

from __future__ import annotations

import base64
import json

import pytest

from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.known_functions import KnownFunctions
from tailrace.gateway.on_done import OnDone
from tailrace.gateway.rules.highest_priority import HighestPriorities
from tailrace.gateway.submission import SubmissionRule
from tailrace.gateway.submission_columns import WorkloadColumns
from tailrace.model.errors import InvalidRequest, UserError
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.priority import Priority
from tailrace.model.workload import Kind
from tailrace.stores.jobs.rules.callback import CALLBACK
from tailrace.stores.queue.intake import Callback
from tailrace.wire.v1 import gateway_pb2 as pb

SECRETS = {"callbacks": {"secrets": ["whsec_" + base64.b64encode(b"k" * 32).decode()]}}
ADDRESS = 'https://example.org/done?of="us"'


def schema(required: list[str], *others: str) -> str:
    return json.dumps({"properties": {name: {} for name in (*required, *others)}, "required": required})


FUNCTIONS = KnownFunctions()
FUNCTIONS.replace(
    [
        FunctionSpec("index", priority=Priority.EVENTUAL),
        FunctionSpec("tell", arguments=schema(["event"], "loud")),
        FunctionSpec("two", arguments=schema(["a", "b"])),
        FunctionSpec("deaf", arguments=schema([])),
    ]
)


def subject(**bounds: object) -> OnDone:
    return OnDone(GatewayConfig.model_validate(bounds), FUNCTIONS, HighestPriorities())


def test_a_function_gets_the_event_as_its_first_argument() -> None:
    assert subject().callback("tell", 1) == Callback(Kind("tell", 1), b'{"event":', b"}")
    assert subject().callback("index", 3) == Callback(Kind("index", 3))


def test_a_function_is_told_as_urgently_as_it_may_be() -> None:
    highest = HighestPriorities()
    highest.replace([Quota("tell", highest="eventual")])
    told = OnDone(GatewayConfig(), FUNCTIONS, highest)
    assert told.callback("tell", 0).kind == Kind("tell", int(Priority.EVENTUAL))
    assert told.callback("tell", 3).kind == Kind("tell", 3)


def test_an_address_is_told_by_the_gateway() -> None:
    kind, prefix, suffix = subject(**SECRETS).callback(ADDRESS, 0)
    assert kind.function == CALLBACK
    assert json.loads(prefix + b'{"id":1}' + suffix) == {"url": ADDRESS, "event": {"id": 1}}


@pytest.mark.parametrize(
    ("on_done", "why"),
    [
        (ADDRESS, "sends no callbacks over HTTP"),
        ("tel", "no function 'tel'.*did you mean 'tell'"),
        ("two", "on_done: 'two' gets 'a' alone, and needs b too"),
        ("deaf", "on_done: 'deaf' takes no argument"),
    ],
)
def test_what_cannot_be_told_is_refused_whole(on_done: str, why: str) -> None:
    rule = SubmissionRule(GatewayConfig(), FUNCTIONS)
    good, bad = pb.NewWorkload(function="index"), pb.NewWorkload(function="index", on_done=on_done)
    with pytest.raises(UserError, match=f"workload 1 of 2: .*{why}"):
        rule.items([good, bad], 0.0)
    with pytest.raises(UserError, match=why):
        WorkloadColumns(rule, pb.Alike(forms=[bad], payloads=[b"", b""]), 0.0)


@pytest.mark.parametrize("address", ["https://10.0.0.1/", "http://example.org/", "https://a:b@example.org/"])
def test_an_address_that_may_not_be_called_is_refused(address: str) -> None:
    with pytest.raises(InvalidRequest, match=r"on_done|callbacks\.allow"):
        subject(**SECRETS).callback(address, 0)


def test_workloads_tell_their_ends_one_by_one_and_in_columns() -> None:
    rule = SubmissionRule(GatewayConfig(), FUNCTIONS)
    wanted = [Callback(Kind("tell", 2), b'{"event":', b"}"), None]
    forms = [pb.NewWorkload(function="index", on_done="tell", priority=2), pb.NewWorkload(function="index")]
    assert [each.on_done for each in rule.items(forms, 0.0)] == wanted
    columns = WorkloadColumns(rule, pb.Alike(forms=forms, payloads=[b"1", b"2"], form_of=[0, 1]), 0.0)
    assert [each.on_done for each in columns.items(0, 2)] == wanted
