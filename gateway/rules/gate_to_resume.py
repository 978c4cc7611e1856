"""The refusals of a change of a gate: a `resume` for which there is no gate, with the gates that may have been meant,
and a change by a narrower right than that which set it."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.did_you_mean import meant
from ...model.gate import Gate
from ...model.rights import Right, not_held, right_of

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


#: The right of users of this machine, and of certificates without rights of their own.
WHOLE = Right("operate")


def too_narrow(gate: Gate, standing: Iterable[Gate], rights: Iterable[Right] | None) -> str:
    """The message that a gate was set by a wider right than these; empty: it may be changed. None: the caller may do
    whatever its role may. A gate of a version that noted no right counts as one of an operator of everything."""
    set_before = next((each for each in standing if each.key == gate.key), None)
    if rights is None or set_before is None:
        return ""
    needed = right_of(set_before.right) if set_before.right else WHOLE
    if not_held(rights, [needed]) is None:
        return ""
    return (
        f"the gate before {gate.what} was set with the right {needed}, and is changed or resumed with one as wide: ask "
        f"{set_before.who or 'an operator'}, who set it"
    )
