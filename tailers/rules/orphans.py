"""Steps of an orphan, an item that a former owner of a stream had detached, pure: from its row to its new owner's care.

    found                                  first     then
    it runs where nobody hears of its end  WAIT      its guard starts it once that is over
    it was adopted, and was passed         RECORD    read again, it settles as what this owner handed out
    … and was not passed                   CARED     its record is read with all others
    it does not run, and was passed        RELEASE   written as it was to be: COPY, from the source's record; then CARED
    … and was not passed                   RELEASE   CARED: its record is read with all others

An item that was passed is below the frontier, where its owner never reads by itself. A row that was RELEASEd says that
its item may run again: as the COPY of its record, and where the source has it no more, when its guard is looked at.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ...model.ledger import LedgerEntry


class OrphanStep(Enum):
    """The step that is next."""

    WAIT = "wait"
    RECORD = "record"
    RELEASE = "release"
    COPY = "copy"
    CARED = "cared"


class Orphan(NamedTuple):
    """The state of an orphan: its row as it was last read or written, the step that is next, whether it was passed, and
    until when it may run elsewhere (monotonic)."""

    row: LedgerEntry
    step: OrphanStep
    passed: bool
    until: float = 0.0


def found(row: LedgerEntry, *, passed: bool, adopted: bool, until: float | None) -> Orphan:
    """The state of an orphan whose row was found; `until` when it may run elsewhere, None: it does not."""
    if until is not None:
        return Orphan(row, OrphanStep.WAIT, passed, until)
    if not adopted:
        return Orphan(row, OrphanStep.RELEASE, passed)
    return Orphan(row, OrphanStep.RECORD if passed else OrphanStep.CARED, passed)


def written(orphan: Orphan, wanted: LedgerEntry, stands: LedgerEntry | None) -> Orphan:
    """The state of an orphan after its row was compared and set to `wanted`, and is `stands` now. Where another write
    of the row came first, its writer cares for the item."""
    if stands == wanted and orphan.passed:
        return Orphan(wanted, OrphanStep.COPY, passed=True)
    return Orphan(orphan.row if stands is None else stands, OrphanStep.CARED, orphan.passed)
