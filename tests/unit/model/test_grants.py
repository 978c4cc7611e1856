"""Grants: which rights a caller by certificate has of its own."""

from __future__ import annotations

import pytest

from tailrace.model import role_calls, token_calls
from tailrace.model.caller import ROLES, Caller
from tailrace.model.errors import InvalidRequest
from tailrace.model.grants import MEANT, read_grants, rights_of
from tailrace.model.rights import ACTIONS, Right

GRANTS = read_grants(
    {"worker/*": [], "worker/gpu-*": ["run:ml.*"], "worker/gpu-1": ["run:ml.train"], "client/a": ["read"]}
)


@pytest.mark.parametrize(
    ("role", "name", "rights"),
    [
        ("worker", "gpu-1", (Right("run", "ml.train"),)),
        ("worker", "gpu-12", (Right("run", "ml.*"),)),
        ("worker", "cpu", ()),
        ("client", "a", (Right("read"),)),
        ("client", "ab", None),
        ("operator", "a", None),
    ],
)
def test_the_nearest_name_says(role: str, name: str, rights: tuple[Right, ...] | None) -> None:
    assert rights_of(GRANTS, Caller("f", role, name)) == rights


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"wroker/x": []}, "did you mean 'worker'"),
        ({"worker": []}, "expected ROLE/NAME, such as worker/gpu-1"),
        ({"worker/": []}, "expected ROLE/NAME"),
        ({"worker/*x": []}, "expected ROLE/NAME"),
        ({"worker/x": ["fly"]}, "'fly' is not an action that a right can allow"),
        ({"scheduler/x": []}, "'scheduler/x': a scheduler acts for all functions at once.*leave it out.*client, node,"),
        ({"gateway/*": ["read"]}, r"'gateway/\*': a gateway acts for all functions at once.*leave it out"),
        ({"tailer/x": ["read:a"]}, "'tailer/x' has 'read:a', and a tailer does nothing that needs.*expected submit"),
        ({"client/x": ["run:a"]}, "a client does nothing that needs the right run; expected operate or read or submit"),
        ({"worker/x": ["administer"]}, "a worker does nothing that needs the right administer"),
        ({f"worker/{number}": [] for number in range(1001)}, "1001 callers: expected at most 1000"),
    ],
)
def test_what_can_be_no_grant_is_refused(given: dict[str, list[str]], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        read_grants(given)


@pytest.mark.parametrize("role", MEANT)
def test_a_role_is_given_rights_to_what_it_may_call(role: str) -> None:
    may = {
        call.action
        for name, call in token_calls.CALLS.items()
        if not role_calls.refusal(Caller("f", role, "x"), name) and name not in ("Gateway/Watch", *FOR_ALL)
    }
    sessions = {"Scheduler/AttachTailer": "submit", "Scheduler/AttachWorker": "run"}
    may |= {action for name, action in sessions.items() if not role_calls.refusal(Caller("f", role, "x"), name)}
    assert set(MEANT[role]) == may <= set(ACTIONS)


#: Methods that every role may call, and that parts do not call for somebody's work.
FOR_ALL = ("Gateway/ListFunctions",)


def test_rights_of_every_other_role_would_do_nothing() -> None:
    assert set(ROLES) - set(MEANT) == {"gateway", "scheduler"}
