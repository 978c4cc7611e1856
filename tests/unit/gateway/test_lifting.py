"""Refusals where there is no gate to resume."""

from __future__ import annotations

import pytest

from tailrace.gateway.rules.lifting import no_gate
from tailrace.model.gate import Gate

STANDING = [
    Gate("greet", "", "pause", tenant="acme"),
    Gate("mail", "", "pause"),
    Gate("", "", "drop", source="orders"),
]


@pytest.mark.parametrize(
    ("gate", "says"),
    [
        (Gate("mail", "", "resume"), ""),
        (Gate("greet", "", "resume", tenant="acme"), ""),
        (Gate("greet", "", "resume"), "before greet, so nothing was resumed; one does before function greet × tenant"),
        (Gate("", "", "resume", tenant="acme"), "one does before function greet × tenant acme"),
        (Gate("mial", "", "resume"), "did you mean 'mail'?"),
        (Gate("", "", "resume", source="ordres"), "did you mean 'source orders'?"),
        (Gate("other", "", "resume"), "`tailrace gate list` shows"),
    ],
)
def test_what_stands_beside_it_is_named(gate: Gate, says: str) -> None:
    found = no_gate(gate, STANDING)
    assert says in found and bool(says) is bool(found)


def test_of_many_a_few_are_named() -> None:
    found = no_gate(Gate("f", "", "resume"), [Gate("f", "", "pause", tenant=f"t{n}") for n in range(9)])
    assert "t4 and 4 more: resume" in found and "t5" not in found
