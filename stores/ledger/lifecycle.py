"""The moves of a ledger's row, and whose they are, as one table (L14 to L18).

    before       the source's owner                  a due copy
    (none)       SUSPECT, PARKING, DEAD              -
    SUSPECT      SUSPECT, PARKING, DONE, DEAD        -
    PARKING      PARKING, PARKED, DEAD               PARKED, RUNNING, DONE, DEAD
    PARKED       -                                   RUNNING, DONE, DEAD
    RUNNING      -                                   RUNNING, PARKING, DONE, DEAD
    DONE, DEAD   -                                   -

A copy that was never run may end too: expired, cancelled or dropped. A copy writes PARKED over the PARKING that it or
another copy wrote (L18). Terminal rows only leave, by themselves.
"""

from __future__ import annotations

from ...sdk.model.ledger import Entry, Place

_OWNER: dict[Place | None, frozenset[Place]] = {
    None: frozenset({Place.SUSPECT, Place.PARKING, Place.DEAD}),
    Place.SUSPECT: frozenset({Place.SUSPECT, Place.PARKING, Place.DONE, Place.DEAD}),
    Place.PARKING: frozenset({Place.PARKING, Place.PARKED, Place.DEAD}),
}
_COPY: dict[Place | None, frozenset[Place]] = {
    Place.PARKING: frozenset({Place.PARKED, Place.RUNNING, Place.DONE, Place.DEAD}),
    Place.PARKED: frozenset({Place.RUNNING, Place.DONE, Place.DEAD}),
    Place.RUNNING: frozenset({Place.RUNNING, Place.PARKING, Place.DONE, Place.DEAD}),
}
_NONE: frozenset[Place] = frozenset()


def may_move(before: Place | None, after: Place, *, owner: bool) -> bool:
    """Whether the table allows the move to the source's owner, or else to a due copy."""
    return after in (_OWNER if owner else _COPY).get(before, _NONE)


def refusal(before: Entry | None, after: Entry, *, owner: bool) -> str:
    """Why a change may not be written by whoever asks; empty when it may.

    Beside the table: n rises by one with each move to PARKING from where the item may run, and stays otherwise; no
    fence and no count goes back; a new run has a higher fence (L19).
    """
    place = before.place if before else None
    if not may_move(place, after.place, owner=owner):
        who = "the owner" if owner else "a due copy"
        return f"{who} may not move a row from {place.label if place else 'nothing'} to {after.place.label}"
    if before is None:
        first = after.place is Place.PARKING
        return f"the first parking has n {after.n}, not 1" if first and after.n != 1 else ""
    n = before.n + (after.place is Place.PARKING and place is not Place.PARKING)
    if (after.position, after.n) != (before.position, n):
        return f"position {after.position}, n {after.n}: expected position {before.position}, n {n}"
    lowest = before.fence + (after.place is Place.RUNNING)
    if after.fence < lowest:
        return f"fence {after.fence}: expected at least {lowest}"
    if after.attempts < before.attempts or after.crashes < before.crashes or after.throttles < before.throttles:
        return "attempts, crashes and throttles never go back"
    return ""
