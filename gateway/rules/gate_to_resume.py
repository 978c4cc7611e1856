"""The gate that a `resume` is to remove: what is said where none stands before just that."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.did_you_mean import meant
from ...model.gate import Gate

#: Gates that one refusal names.
MOST_NAMED = 5


def no_gate(gate: Gate, standing: Iterable[Gate]) -> str:
    """Why nothing can be resumed, with the gates that may have been meant; empty: there is a gate. One of a function
    does not remove those of its collections or tenants, so whoever gives the function alone hears of them."""
    others = list(standing)
    if any(each.key == gate.key for each in others):
        return ""
    start = f"no gate stands before {gate.what}, so nothing was resumed"
    beside = [each.what for each in others if any(a and a == b for a, b in zip(each.key, gate.key, strict=True))]
    if beside:
        rest = f" and {len(beside) - MOST_NAMED} more" if len(beside) > MOST_NAMED else ""
        return f"{start}; one does before {', '.join(beside[:MOST_NAMED])}{rest}: resume the one that is meant"
    return f"{start}; {meant(gate.what, [each.what for each in others], '`tailrace gate list` shows those that do')}"
