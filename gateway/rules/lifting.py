"""Lifting: THE rule of who may lift what somebody stopped (a gate, a pause of a schedule or of a job), and the refusal
of a `resume` for which there is no gate, with the gates that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.did_you_mean import meant
from ...model.gate import Gate
from ...model.rights import Need, Right, not_held, right_of, widest

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


def noted(rights: Iterable[Right] | None, need: Need) -> str:
    """The right that is noted with something that is stopped now: the widest of the caller's that are enough, as text.
    None: the caller may do whatever its role may."""
    return str(WHOLE if rights is None else widest(rights, need) or WHOLE)


def too_narrow(what: str, right: str, rights: Iterable[Right] | None, who: str = "") -> str:
    """The message that something was stopped by a wider right than these; empty: it may be lifted. `right`: the noted
    one; empty: a version that noted none stopped it, which counts as an operator of everything."""
    needed = right_of(right) if right else WHOLE
    if rights is None or not_held(rights, [needed]) is None:
        return ""
    return (
        f"{what} was set with the right {needed}, and is changed or resumed with one as wide: ask "
        f"{f'{who}, who set it' if who else 'an operator who has that'}"
    )
