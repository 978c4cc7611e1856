"""Cross-check of an audit book against the stores: an item that left its stream for a store must be there, or have
ended there.

A book says how many positions left for the delay service and how many died. The ledger and the dead letters count for
themselves, in their own transactions. Both move on during an audit, so they are asked before and after the book is
read: everything in the book must be in their answer after it, and everything in their answer before it must be in the
book or not settled.
"""

from __future__ import annotations

from typing import NamedTuple

from ...model.audit import AFTER_DELAY, HELD, IN_FLIGHT, SETTLED, Audit, Fate


class PartitionFacts(NamedTuple):
    """Counts of one partition. Of the items that were ever parked `waiting` are not over, `done` and `buried` ended so;
    `letters` is the number of positions that ever had a dead letter; `dropped` and `forgotten` are the numbers of
    positions that were noted as drops, by a gate and by retention."""

    waiting: int = 0
    done: int = 0
    buried: int = 0
    letters: int = 0
    dropped: int = 0
    forgotten: int = 0

    @property
    def parked(self) -> int:
        """Number of items that were ever parked."""
        return self.waiting + self.done + self.buried


def after_delay(audit: Audit, waiting: int, letters: int | None) -> None:
    """Adds to the audit of a range how its delayed positions ended: `waiting` of them are not over, `letters` positions
    of the range ever had a dead letter (None: nobody knows any more)."""
    counts = audit.counts
    delayed, dead = counts.get(Fate.DELAYED.label, 0), counts.get(Fate.DEAD.label, 0)
    over = max(0, delayed - waiting)
    gone = 0 if letters is None else min(over, max(0, letters - dead))
    told = {
        Fate.DELAYED.label: delayed - over,
        Fate.DEAD.label: dead + gone,
        SETTLED if letters is None else AFTER_DELAY: over - gone + (counts.get(SETTLED, 0) if letters is None else 0),
    }
    audit.counts = {label: count for label, count in {**counts, **told}.items() if count}


def cross_check(audit: Audit, before: PartitionFacts, after: PartitionFacts) -> None:
    """Adds to the audit of a whole partition the contradictions of its witnesses, the stores, and how its delayed
    positions ended.

    A position whose record was forgotten by its source while it was parked counts as lost to retention, and one that
    died just before a crash may have succeeded after it: neither is a fault.
    """
    counts = audit.counts
    delayed, dead = counts.get(Fate.DELAYED.label, 0), counts.get(Fate.DEAD.label, 0)
    if after.parked < delayed:
        audit.faults.append(
            f"{delayed} positions left for the delay service, but the ledger knows of {after.parked}: "
            f"{delayed - after.parked} have no row and did not end"
        )
    open_ones = sum(counts.get(label, 0) for label in (HELD, IN_FLIGHT, Fate.LOST.label, Fate.ABSENT.label))
    if before.parked > delayed + open_ones:
        audit.faults.append(
            f"the ledger knows of {before.parked} positions that left for the delay service, the checkpoint of "
            f"{delayed}: {before.parked - delayed - open_ones} ended in another way too"
        )
    buried = dead + after.buried
    if after.letters < buried:
        audit.faults.append(
            f"{buried} positions died, but only {after.letters} have a dead letter, or had one that was redriven "
            "or purged"
        )
    for fate, noted in ((Fate.DROPPED, after.dropped), (Fate.LOST, after.forgotten)):
        if noted < counts.get(fate.label, 0):
            audit.faults.append(
                f"{counts[fate.label]} positions {fate.label}, but only {noted} are noted as drops: the others were "
                "passed without a note"
            )
    done = min(after.done, delayed)
    gone = min(after.buried, delayed - done)
    told = {AFTER_DELAY: done, Fate.DEAD.label: dead + gone, Fate.DELAYED.label: delayed - done - gone}
    audit.counts = {label: count for label, count in {**counts, **told}.items() if count}
