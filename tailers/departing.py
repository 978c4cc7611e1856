"""Items that leave a stream for a store: how each ended, what is settled when it is there, and the settling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ..sdk.model.audit import Fate
from ..sdk.model.ledger import Entry
from ..sdk.model.outcome import Outcome
from ..sdk.model.parked import Parked
from ..sdk.model.tries import Try, added
from ..sdk.model.workload import Ended
from ..sdk.source import StreamBatch
from .mapping import Mapped
from .partition import Partition
from .rows import Home
from .rules import ledger
from .rules.settlement import History

#: What outcomes are called where people read of them.
OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}


class Departing(NamedTuple):
    """An item that ended: its place in its flight, when that was pushed (wall clock), its fence, and how it ended."""

    partition: Partition
    batch: StreamBatch
    mapped: Mapped
    place: int  # its index in the batch
    pushed_at: float
    fence: int
    ended: Ended

    def tag(self, fate: Fate) -> Tag:
        """What is settled when it is in its store. Of what was detached the ledger knows how it ended."""
        part, batch, _, place, _, _, _ = self
        position = batch.positions[place]
        if fate is not Fate.DELAYED and part.is_detached(position):
            fate = Fate.DELAYED
        return Tag(part, position, len(batch.payloads[place]), fate)

    @property
    def position(self) -> int:
        """Its position in the source that this tailer reads."""
        return self.batch.positions[self.place]

    @property
    def former(self) -> Parked | None:
        """What it was when it was parked; None: it comes from the source itself."""
        return self.mapped.parked.get(self.place)

    @property
    def row(self) -> Entry | None:
        """Its row in the ledger, as this tailer knows it."""
        return self.partition.row(self.batch.positions[self.place])

    def tries(self, reason: str, now: float, row: Entry | None) -> tuple[Try, ...]:
        """How its attempts went, this one too, given its row. `now`: wall clock seconds."""
        return added(row.tries if row else (), now, OUTCOMES[self.ended.outcome], reason)

    def history(self, now: float) -> History:
        """What happened to it before this end: in this epoch, else when it was parked. `now`: wall clock seconds."""
        part, batch, mapped, place, pushed_at, _, _ = self
        position = batch.positions[place]
        trouble, row, parked = part.troubles.get(position), part.rows.get(position), mapped.parked.get(place)
        late = max(0.0, now - (pushed_at if parked is None else parked.due))
        if trouble is not None:
            return trouble._replace(late=late)
        if row is not None:
            return ledger.history(row, late)
        return History(late=late) if parked is None else History(parked.attempt, parked.crashes, parked.throttles, late)


class Tag(NamedTuple):
    """An item on its way into a store: settled when it is there."""

    partition: Partition
    position: int
    size: int
    fate: Fate


class Leaving(NamedTuple):
    """An item on its way into the delay service: its row before and as it shall be (None: it has none, as what was
    parked by an older version). `written`: the row says so already."""

    parked: Parked
    home: Home | None
    before: Entry | None
    wanted: Entry | None
    written: bool = False


def settle(tags: Iterable[Tag]) -> None:
    """Items that are where they were to go: now, and only now, the frontiers may pass them. Their memory is free. Those
    that were detached have been passed."""
    together: defaultdict[tuple[Partition, Fate], list[int]] = defaultdict(list)
    for part, position, size, fate in tags:
        part.window.give(1, size)
        if part.detached.pop(position, None) is None:
            together[part, fate].append(position)
        else:
            part.rows.pop(position, None)
    for (part, fate), positions in together.items():
        part.settle(sorted(positions), fate)
