"""Items that leave a stream for a store: how each ended, what is settled when it is there, and the settling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from ...sdk.model.audit import Fate
from ...sdk.model.ledger import LedgerEntry
from ...sdk.model.outcome import Outcome
from ...sdk.model.parked import Parked
from ...sdk.model.tries import Try, added
from ...sdk.model.workload import Ended
from ...sdk.source import StreamBatch
from ..ledger.rows import RowHome
from ..mapping.mapping import Mapped
from ..partition import Partition
from ..rules import ledger
from ..rules.settlement import History

#: What outcomes are called where people read of them.
OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}


class Departing(msgspec.Struct, frozen=True):
    """An item that ended: its place in its flight, when that was pushed (wall clock), its fence, and how it ended.

    position  in the source that this tailer reads
    former    what it was when it was parked; None: it comes from the source itself
    row       its row in the ledger, as this tailer knew it when it ended
    """

    partition: Partition
    batch: StreamBatch
    mapped: Mapped
    place: int  # its index in the batch
    pushed_at: float
    fence: int
    ended: Ended
    position: int
    former: Parked | None
    row: LedgerEntry | None

    def tag(self, fate: Fate) -> Tag:
        """What is settled when it is in its store. Of what was detached the ledger knows how it ended."""
        if fate is not Fate.DELAYED and self.partition.is_detached(self.position):
            fate = Fate.DELAYED
        return Tag(self.partition, self.position, len(self.batch.payloads[self.place]), fate)

    def tries(self, reason: str, now: float) -> tuple[Try, ...]:
        """How its attempts went, this one too. `now`: wall clock seconds."""
        return added(() if self.row is None else self.row.tries, now, OUTCOMES[self.ended.outcome], reason)

    def history(self, now: float) -> History:
        """What happened to it before this end: in this epoch, else when it was parked. `now`: wall clock seconds."""
        part, position, parked = self.partition, self.position, self.former
        late = now - (self.pushed_at if parked is None else parked.due)
        late = late if late > 0 else 0.0
        if part.troubles and (trouble := part.troubles.get(position)) is not None:
            return trouble._replace(late=late)
        if part.rows and (row := part.rows.get(position)) is not None:
            return ledger.history(row, late)
        return (
            History(1, 0, 0, late)
            if parked is None
            else History(parked.attempt, parked.crashes, parked.throttles, late)
        )


def departing(
    partition: Partition, batch: StreamBatch, mapped: Mapped, place: int, pushed_at: float, fence: int, ended: Ended
) -> Departing:
    """An item of a batch, with what is known of it."""
    position, former = batch.positions[place], mapped.parked.get(place)
    return Departing(
        partition, batch, mapped, place, pushed_at, fence, ended, position, former, partition.row(position)
    )


class Tag(msgspec.Struct, frozen=True):
    """An item on its way into a store: settled when it is there."""

    partition: Partition
    position: int
    size: int
    fate: Fate


class Leaving(msgspec.Struct, frozen=True):
    """An item on its way into the delay service: its row before and as it shall be (None: it has none, as what was
    parked by an older version). `written`: the row says so already."""

    parked: Parked
    home: RowHome | None
    before: LedgerEntry | None
    wanted: LedgerEntry | None
    written: bool = False


def settle(tags: Iterable[Tag]) -> None:
    """Items that are where they were to go: now, and only now, the frontiers may pass them. Their memory is free. Those
    that were detached have been passed."""
    together: defaultdict[tuple[Partition, Fate], list[Tag]] = defaultdict(list)
    for tag in tags:
        together[tag.partition, tag.fate].append(tag)
    for (part, fate), those in together.items():
        part.window.give(len(those), sum([tag.size for tag in those]))
        positions = sorted([tag.position for tag in those])
        if part.detached:
            passed = part.detached.keys() & positions
            positions = [position for position in positions if position not in passed]
            for position in passed:
                del part.detached[position]
                part.rows.pop(position, None)
        if positions:
            part.settle(positions, fate)
