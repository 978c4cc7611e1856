"""The moves of a ledger's row that each writer may make, as one table (L14 to L18).

    before       the source's owner                  a due copy
    (none)       SUSPECT, PARKING, DEAD              -
    SUSPECT      SUSPECT, PARKING, DONE, DEAD        PARKING
    PARKING      PARKING, PARKED, DONE, DEAD         PARKING, PARKED, RUNNING, DONE, DEAD
    PARKED       -                                   PARKING, RUNNING, DONE, DEAD
    RUNNING      -                                   PARKING, PARKED, RUNNING, DONE, DEAD
    DONE, DEAD   -                                   -

A copy that was never run may end too: expired, cancelled or dropped. A copy writes PARKED over the PARKING that it or
another copy wrote (L18), and over its own RUNNING when it was throttled and waits in the due stream; it writes PARKING
over any row that a ledger restored from a backup has of it. The owner ends a PARKING row only of a detached item, which
ran for that owner all the while. Terminal rows go by themselves.
"""

from __future__ import annotations

from ...model.ledger import LedgerEntry, LedgerPlace

_OWNER: dict[LedgerPlace | None, frozenset[LedgerPlace]] = {
    None: frozenset({LedgerPlace.SUSPECT, LedgerPlace.PARKING, LedgerPlace.DEAD}),
    LedgerPlace.SUSPECT: frozenset({LedgerPlace.SUSPECT, LedgerPlace.PARKING, LedgerPlace.DONE, LedgerPlace.DEAD}),
    LedgerPlace.PARKING: frozenset({LedgerPlace.PARKING, LedgerPlace.PARKED, LedgerPlace.DONE, LedgerPlace.DEAD}),
}
_ENDS = frozenset({LedgerPlace.DONE, LedgerPlace.DEAD})
_COPY: dict[LedgerPlace | None, frozenset[LedgerPlace]] = {
    LedgerPlace.SUSPECT: frozenset({LedgerPlace.PARKING}),
    LedgerPlace.PARKING: _ENDS | {LedgerPlace.PARKING, LedgerPlace.PARKED, LedgerPlace.RUNNING},
    LedgerPlace.PARKED: _ENDS | {LedgerPlace.PARKING, LedgerPlace.RUNNING},
    LedgerPlace.RUNNING: _ENDS | {LedgerPlace.PARKING, LedgerPlace.PARKED, LedgerPlace.RUNNING},
}


def _table(moves: dict[LedgerPlace | None, frozenset[LedgerPlace]]) -> tuple[tuple[bool, ...], ...]:
    """The moves as a table of booleans, by the numbers of both places; "no row" has 0."""
    befores: list[LedgerPlace | None] = [None, *LedgerPlace]
    return tuple(tuple(after in moves.get(before, ()) for after in (None, *LedgerPlace)) for before in befores)


_OWNERS_MOVES, _COPIES_MOVES = _table(_OWNER), _table(_COPY)


def may_move(before: LedgerPlace | None, after: LedgerPlace, *, owner: bool) -> bool:
    """Whether the table allows the move to the source's owner, or else to a due copy."""
    return (_OWNERS_MOVES if owner else _COPIES_MOVES)[before or 0][after]


def refusal(before: LedgerEntry | None, after: LedgerEntry, *, owner: bool) -> str:
    """The reason for which a change may not be written by this writer; empty when it may.

    Beside the table: no fence and no n goes back, a new run has a higher fence (L19), and n rises by one with each new
    parking. (A run may have a higher n than the row when the ledger was restored from a backup.)
    """
    place, going = before.place if before else None, after.place
    if not may_move(place, going, owner=owner):
        who = "the owner" if owner else "a due copy"
        return f"{who} may not move a row from {place.label if place else 'nothing'} to {going.label}"
    position, n, fence = (before.position, before.n, before.fence) if before else (after.position, 0, 0)
    if after.position != position:
        return f"the row before has position {position}"
    if not _may_follow(n, after.n, place, going):
        return f"n {after.n} after {n} in a move to {going.label}"
    lowest = fence + (going is LedgerPlace.RUNNING)
    return "" if after.fence >= lowest else f"fence {after.fence}: expected at least {lowest}"


def _may_follow(before: int, after: int, place: LedgerPlace | None, going: LedgerPlace) -> bool:
    """Whether a row with n `before` may have n `after` once it moved from `place` to `going`."""
    if going is LedgerPlace.PARKING:
        return after == before + 1 or (after == before and place is LedgerPlace.PARKING)  # the same parking, rewritten
    return after >= before if going is LedgerPlace.RUNNING else after == before
