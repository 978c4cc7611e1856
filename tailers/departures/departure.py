"""Items of a stream that ended, and departures: the state of an item while it leaves its tailer, whichever way it
goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from ...model.audit import Fate
from ...model.dead_letter import DeadLetter
from ...model.drop import Drop
from ...model.item_key import ItemKey
from ...model.ledger import LedgerEntry
from ...model.outcome import Outcome
from ...model.parked import Parked
from ...model.tries import Try, added
from ...model.workload import NO_EXTRA, Ended, Extra, Headers, Kind
from ..hand_out import HandOut
from ..items import Items
from ..ledger.rows import RowHome
from ..partition import Partition
from ..rules import ledger
from ..rules.departure_steps import Leg
from ..rules.settlement import History, Settlement

#: Names of outcomes, as people read them.
OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}


class EndedItem(msgspec.Struct, frozen=True):
    """An item that ended: its index in the batch with which it was read, when it was pushed (wall clock), its fence,
    and how it ended.

    position  in the source that this tailer reads
    former    the copy that was parked of it; None: it comes from the source itself
    row       its row in the ledger, as this tailer knew it when it ended
    """

    items: Items
    index: int
    pushed_at: float
    fence: int
    ended: Ended
    partition: Partition
    position: int
    former: Parked | None
    row: LedgerEntry | None

    @property
    def key(self) -> ItemKey:
        """The item's partition and position."""
        return self.partition.name, self.position

    @property
    def id(self) -> str:
        """The item's id, as people know it."""
        return self.items.mapped.ids[self.index]

    @property
    def kind(self) -> Kind:
        """The item's kind, by its own priority."""
        return self.items.mapped.kind(self.index)

    @property
    def payload(self) -> bytes:
        """The payload with which its function is called."""
        return self.items.batch.payloads[self.index]

    @property
    def headers(self) -> Headers:
        """Headers that the mapping did not use."""
        return self.items.mapped.headers[self.index]

    @property
    def extra(self) -> Extra:
        """The fields that only few items have."""
        return self.items.mapped.extras.get(self.index, NO_EXTRA)

    @property
    def in_order(self) -> bool:
        """Whether others of its key, or of its partition, wait for it."""
        order = self.partition.order
        return order is not None and order.is_head(self.position)

    @property
    def first_seen(self) -> float:
        """The time (wall clock) at which it was first handed out, or read."""
        return self.pushed_at if self.former is None else self.former.first_seen

    @property
    def progress(self) -> str:
        """The last note of its function about how far it came."""
        return self.ended.progress or self.extra.progress

    def alone(self) -> EndedItem:
        """The item in columns of its own, which outlive its flight."""
        return replace(self, items=self.items.one(self.index), index=0)

    def known(self) -> EndedItem:
        """The item with its row as it is known now."""
        return replace(self, row=self.partition.row(self.position))

    def tries(self, reason: str, now: float) -> tuple[Try, ...]:
        """All attempts of the item and how each went, this one too. `now`: wall clock seconds."""
        return added(() if self.row is None else self.row.tries, now, OUTCOMES[self.ended.outcome], reason)

    def history(self, now: float) -> History:
        """The past of the item before this end: as counted in this epoch, else by its row, else as it was parked.
        `now`: wall clock seconds."""
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


def ended_item(items: Items, index: int, pushed_at: float, fence: int, ended: Ended) -> EndedItem:
    """An item of a batch that ended, with its row and its former state."""
    part = items.partition if items.parts is None else items.parts[index]
    position = items.batch.positions[index]
    former, row = items.mapped.parked.get(index), part.row(position)
    return EndedItem(items, index, pushed_at, fence, ended, part, position, former, row)


def ended_of(out: HandOut, index: int, ended: Ended) -> EndedItem:
    """An item of a hand-out that ended, with its row and its former state."""
    return ended_item(out.place, index, out.pushed_at, out.flight.fence, ended)


#: The content appended where an item goes to: a copy, a letter, its id with its result, or a note.
Load = Parked | DeadLetter | tuple[str, bytes, str] | Drop


class Departure(msgspec.Struct):
    """An item on its way out of its tailer.

    size   the bytes of memory that are free when it is gone
    fate   how it is counted then
    leg    how far it is on its way (rules/departure_steps.py)
    home   where its row is; None: it has none
    load   the content that is appended; None: nothing is
    item   the item itself, in columns of its own, where somebody still asks for it when it is done
    letter  the number of its dead letter, which is forgotten when it ends otherwise; 0: it is not redriven
    placed  its source was asked where it lies, for its letter
    runs   it is out meanwhile, and settled when it is done: nothing else counts it as leaving
    not_before  the time (monotonic) before which an item that stays must not start
    """

    partition: Partition
    position: int
    size: int
    fate: Fate
    leg: Leg
    home: RowHome | None = None
    load: Load | None = None
    item: EndedItem | None = None
    letter: int = 0
    placed: bool = False
    runs: bool = False
    not_before: float = 0.0

    @property
    def key(self) -> ItemKey:
        """The item's partition and position."""
        return self.partition.name, self.position


def departure(
    item: EndedItem, fate: Fate, leg: Leg, home: RowHome | None = None, load: Load | None = None
) -> Departure:
    """The departure of an item. A detached one counts as delayed: the ledger knows how it ended."""
    part, position = item.partition, item.position
    if fate is not Fate.DELAYED and part.is_detached(position):
        fate = Fate.DELAYED
    letter = part.redriven[position].number if position in part.redriven else 0
    return Departure(part, position, len(item.payload), fate, leg, home, load, letter=letter)


def settle(gone: Iterable[Departure]) -> None:
    """Lets the frontiers pass items that are where they were to go, now and only now, and frees their memory. Detached
    items have been passed already."""
    together: defaultdict[tuple[Partition, Fate], list[Departure]] = defaultdict(list)
    for each in gone:
        together[each.partition, each.fate].append(each)
    for (part, fate), those in together.items():
        part.window.give(len(those), sum([each.size for each in those]))
        positions = sorted([each.position for each in those])
        if part.redriven:
            positions = part.end_redriven(positions)
        if part.detached:
            passed = part.detached.keys() & positions
            positions = [position for position in positions if position not in passed]
            for position in passed:
                del part.detached[position]
                part.rows.pop(position, None)
        if positions:
            part.settle(positions, fate)


# The copy of an item that is appended to the delay service.


def copy_of(
    item: EndedItem,
    tailer: str,
    home: RowHome | None,
    settlement: Settlement,
    due: float,
    first_seen: float,
    row: LedgerEntry | None,
) -> Parked:
    """The copy of an item that first came from `tailer`; `home` is where its row is, which shall be `row`."""
    extra = item.extra
    return Parked(
        tailer=tailer,
        id=item.id,
        kind=item.kind,
        payload=item.payload,
        due=due,
        first_seen=first_seen,
        attempt=settlement.failed + 1,
        crashes=settlement.crashes,
        throttles=settlement.throttles,
        fence=item.fence if row is None or item.fence > row.fence else row.fence,
        reason=settlement.reason,
        key=extra.key,
        headers=item.headers,
        expires_at=extra.expires_at,
        progress=item.progress,
        partition="" if home is None else home.partition,
        position=0 if home is None else home.position,
        n=0 if row is None else row.n,
    )


def as_row_says(parked: Parked, row: LedgerEntry | None) -> Parked:
    """A copy with the numbers of its row in the ledger; None: it has no row."""
    if row is None:
        return parked
    return replace(
        parked,
        n=row.n,
        due=row.due,
        attempt=row.attempts + 1,
        crashes=row.crashes,
        throttles=row.throttles,
        fence=max(parked.fence, row.fence),
    )
