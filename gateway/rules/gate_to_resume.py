"""The refusal of a `resume` for which there is no gate, with the gates that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.did_you_mean import meant
from ...model.gate import Gate

#: Most gates that a refusal names.
MOST_NAMED = 5


def no_gate(gate: Gate, standing: Iterable[Gate]) -> str:
    """The message that there is no such gate, with the gates that may have been meant; empty: there is one. The gate of
    a function does not cover those of its collections or tenants, so the message for a function names them."""
    others = list(standing)
    if any(each.key == gate.key for each in others):
        return ""
    start = f"no gate stands before {gate.what}, so nothing was resumed"
    beside = [each.what for each in others if any(a and a == b for a, b in zip(each.key, gate.key, strict=True))]
    if beside:
        rest = f" and {len(beside) - MOST_NAMED} more" if len(beside) > MOST_NAMED else ""
        return f"{start}; one does before {', '.join(beside[:MOST_NAMED])}{rest}: resume the one that is meant"
    return f"{start}; {meant(gate.what, [each.what for each in others], '`tailrace gate list` shows all gates')}"
