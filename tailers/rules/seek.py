"""Positions that a checkpoint moved by hand passes: dropped, unless they ended or left for the delay service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...model.errors import InvalidRequest
from ...model.ledger import LedgerEntry, LedgerPlace
from .frontier import Frontier


class Passing(NamedTuple):
    """Passed positions. `dropped`: ranges that nobody has run, both ends included, rising; `away`: rows of items that
    are elsewhere."""

    dropped: list[tuple[int, int]]
    away: list[LedgerEntry]

    @property
    def items(self) -> int:
        """Number of positions that are dropped."""
        return sum(last - first + 1 for first, last in self.dropped)


def passing(frontier: Frontier, rows: Mapping[int, LedgerEntry], to: int, where: str) -> Passing:
    """The positions that a move of this frontier passes, when nothing of it was read yet. Raises InvalidRequest for a
    move that goes back (L13), and for one past an item of which nobody knows whether it is in the delay service
    (L15)."""
    if to < frontier.position:
        raise InvalidRequest(
            f"{where}: the checkpoint is at {frontier.position} and would go back to {to}. A checkpoint never goes "
            "back: what ended would run again beside its own rows and copies, and the audit would count it twice. "
            "Nothing was changed"
        )
    dropped: list[tuple[int, int]] = []
    away: list[LedgerEntry] = []
    for first, last in frontier.unread(frontier.position, to - 1):
        start = first
        for position in sorted(each for each in rows if first <= each <= last):
            row = rows[position]
            if row.place is LedgerPlace.SUSPECT:
                continue
            if row.place is LedgerPlace.PARKING:
                raise InvalidRequest(
                    f"{where}: the item at {position} was on its way into the delay service when its tailer ended. Let "
                    "the tailer run past it, then seek again. Nothing was changed"
                )
            away.append(row)
            if position > start:
                dropped.append((start, position - 1))
            start = position + 1
        if start <= last:
            dropped.append((start, last))
    return Passing(dropped, away)
