"""Callers by certificate: the meaning of its name, and the calls of each role."""

from __future__ import annotations

import pytest

from tailrace.model import role_calls, token_calls
from tailrace.model.caller import ROLES, Caller, caller_of
from tailrace.model.errors import InvalidRequest
from tailrace.stores.server import PROTOCOLS
from tailrace.wire.operators import PORTS
from tailrace.wire.stores import methods
from tailrace.wire.v1 import delay_pb2, gateway_pb2, scheduler_pb2

SERVED = {
    f"{service.name}/{method.name}"
    for file in (delay_pb2, gateway_pb2, scheduler_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
OPERATIONS = {f"Operators/Call {port}.{name}" for port, protocol in PORTS.items() for name in methods(protocol)}
STORES = {f"Stores/Call {store}.{name}" for store, protocol in PROTOCOLS.items() for name in methods(protocol)}


@pytest.mark.parametrize("role", ROLES)
def test_a_name_says_fleet_role_and_name(role: str) -> None:
    caller = Caller("f1", role, "w-1.example")
    assert caller_of(["https://example.org", caller.uri]) == caller
    assert str(caller) == f"{role} w-1.example of fleet f1"


@pytest.mark.parametrize(
    ("uris", "says"),
    [
        ([], "no URI of this platform"),
        (["https://x"], "no URI of this platform"),
        (["tailrace://f/worker/a", "tailrace://f/worker/b"], "2 URIs"),
        (["tailrace://f/worker"], "expected tailrace://FLEET/worker/NAME"),
        (["tailrace://f/worker/a/b"], "expected tailrace://FLEET/worker/NAME"),
        (["tailrace://f/root/a"], "'root' is no role"),
        (["tailrace://f/workers/a"], "did you mean 'worker'"),
        (["tailrace:///worker/a"], "'' is no fleet"),
        (["tailrace://f/worker/a b"], "'a b' is no name"),
        (["tailrace://f/worker/\ud800"], "is no name"),
        (["tailrace://f/worker/a\n"], "is no name"),
        (["tailrace://f/worker/" + "a" * 100_000], "is no name"),
    ],
)
def test_any_other_name_is_refused(uris: list[str], says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        caller_of(uris)
    assert says in str(refused.value) and len(str(refused.value)) < 1000


def test_every_call_that_is_served_is_for_some_role() -> None:
    for call in SERVED | OPERATIONS | STORES:
        assert any(not role_calls.refusal(Caller("f", role, "x"), call) for role in ROLES), call


def test_the_rule_names_no_call_that_there_is_not() -> None:
    known = SERVED | OPERATIONS | STORES | {"Stores", "Operators", "Metrics/Scrape"}
    assert set(role_calls.CALLS) <= known
    assert set(token_calls.CALLS) <= known


def test_what_is_not_named_is_for_nobody() -> None:
    for role in ROLES:
        assert "nobody may" in role_calls.refusal(Caller("f", role, "x"), "New/Call")
        assert "nobody may" in role_calls.refusal(Caller("f", role, "x"), "")


@pytest.mark.parametrize(
    ("role", "calls"),
    [
        ("worker", {"Scheduler/AttachWorker", "Gateway/RegisterFunctions", "Gateway/Submit"}),
        ("tailer", {"Scheduler/AttachTailer", "Delay/Park", "Stores/Call queue.claim", "Stores/Call control.snapshot"}),
        ("scheduler", {"Gateway/Watch", "Operators/Call usage.tell_usage"}),
        ("client", {"Gateway/Submit", "Gateway/Result"}),
        ("operator", {"Operators/Call limits.set_gate", "Scheduler/Inspect", "Operators/Call tokens.create_token"}),
        ("gateway", {"Stores/Call control.put_token"}),
    ],
)
def test_what_a_role_may(role: str, calls: set[str]) -> None:
    for call in calls:
        assert role_calls.refusal(Caller("f", role, "x"), call) == ""


@pytest.mark.parametrize(
    ("role", "calls"),
    [
        (
            "worker",
            {"Scheduler/AttachTailer", "Stores/Call queue.claim", "Operators/Call limits.set_gate", "Delay/Park"},
        ),
        ("tailer", {"Scheduler/AttachWorker", "Gateway/Submit", "Stores/Call control.put_token"}),
        ("scheduler", {"Scheduler/AttachWorker", "Stores/Call queue.claim", "Gateway/Submit"}),
        (
            "client",
            {"Scheduler/AttachWorker", "Scheduler/AttachTailer", "Operators/Call tokens.create_token", "Delay/Park"},
        ),
        ("operator", {"Scheduler/AttachWorker", "Stores/Call queue.claim"}),
    ],
)
def test_what_a_role_may_not(role: str, calls: set[str]) -> None:
    for call in calls:
        assert f"{role} x of fleet f may not call {call}: " in role_calls.refusal(Caller("f", role, "x"), call)
