"""Suspects: items of a stream that may be to blame for a death are marked in the ledger at a takeover and run alone
(L14).

A tailer that dies leaves a mark of how far it had handed out. Unsettled items below that may have been running: when
the row was not left empty, each of them gets a mark that bars nothing. Counts of crashes, and of attempts that are made
from the source, stand in the same rows, so that they outlive the tailer.
"""

from __future__ import annotations

from ...model.ledger import LedgerPlace
from ...model.workload import Extra
from ..items import Items
from ..partition import Partition
from ..rules.ledger import Find, found, history, is_marked, suspect
from ..rules.settlement import History
from .rows import RowChange, RowHome, Rows

#: At most so many items of a partition are marked, the oldest: no more can have been out, the others were held.
MOST = 4096
#: Rows in one write.
AT_ONCE = 1024


async def mark_suspects(rows: Rows, source: str, part: Partition, epoch: int) -> int:
    """Marks items that the former owner may have left running; returns how many there are."""
    unsettled = part.frontier.unsettled_below(part.handed_out, MOST)
    suspects = [position for position in unsettled if found(part.rows.get(position)) in (Find.RUN, Find.ALONE)]
    for begin in range(0, len(suspects), AT_ONCE):
        changes = [
            RowChange(RowHome(source, part.name, position), row, suspect(row, position, History(), epoch))
            for position in suspects[begin : begin + AT_ONCE]
            for row in (part.rows.get(position),)
        ]
        await rows.write(changes)
    return len(suspects)


def set_not_before(items: Items) -> None:
    """Gives items that failed or were throttled here, perhaps under a former owner, the time before which they may not
    start."""
    part, positions, mapped = items.partition, items.batch.positions, items.mapped
    if not part.has_rows(positions):
        return
    for index, position in enumerate(positions):
        row = part.rows.get(position)
        if row is not None and row.due and row.place is LedgerPlace.SUSPECT:
            mapped.due[index] = row.due


def add_counts(items: Items) -> None:
    """Adds to items about to be handed out the counts that are known of them: attempts, crashes, and whether they run
    alone."""
    part, mapped = items.partition, items.mapped
    for index, position in enumerate(items.batch.positions):
        row, trouble = part.rows.get(position), part.troubles.get(position)
        if trouble is None and row is not None:
            trouble = history(row)
        if trouble is None:
            continue
        mapped.attempts[index] = trouble.attempt
        if trouble.crashes or (row is not None and is_marked(row)):
            extra = mapped.extras.setdefault(index, Extra())
            extra.crashes, extra.alone = trouble.crashes, True
