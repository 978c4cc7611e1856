"""Whose members a consumer group has."""

from __future__ import annotations

import pytest

from tailrace.tailers.rules.group_members import client_name, stranger


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        ([client_name("orders"), client_name("orders")], ""),
        (["tailrace", client_name("orders")], ""),  # an earlier version, while a fleet is replaced
        (["rdkafka", client_name("orders")], "'rdkafka' at 10.0.0.7"),
        ([client_name("payments")], "'tailrace-payments' at 10.0.0.7"),  # another tailer of ours takes records as well
    ],
)
def test_a_group_is_one_tailers(names: list[str], expected: str) -> None:
    assert stranger([(name, "/10.0.0.7") for name in names], "orders") == expected
