"""Grants: which rights a caller by certificate has of its own."""

from __future__ import annotations

import pytest

from tailrace.model.caller import Caller
from tailrace.model.errors import InvalidRequest
from tailrace.model.grants import read_grants, rights_of
from tailrace.model.rights import Right

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
        ({"worker/x": ["fly"]}, "'fly' is nothing that one may"),
        ({f"worker/{number}": [] for number in range(1001)}, "1001 callers: expected at most 1000"),
    ],
)
def test_what_can_be_no_grant_is_refused(given: dict[str, list[str]], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        read_grants(given)
