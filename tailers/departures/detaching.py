"""Detaching of items that run long: they get a row in the ledger and a guard, a copy in the delay service; then the
frontier passes them while they run on (rules/detached.py says when, rules/ledger.py what the row says).

Invariants: an item is passed only when its row and its guard are durable, in that order, so that a row without a guard
is always of an item that the next owner reads again. It is handed out by its source no more: when it is to run again,
since it was lost, throttled or failed, it does so as a copy. Its row is released, so that a copy may start, only when
nothing of it can be running any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

from msgspec.structs import replace

from ...model.audit import Fate
from ...model.item_key import ItemKey
from ...model.ledger import LedgerEntry
from ...model.outcome import Outcome
from ...model.workload import Ended
from ..config import TailerConfig
from ..hand_out import HandOut
from ..items import Items
from ..partition import Partition
from ..rules.departure_steps import Step
from ..rules.detached import Ages, holding_up, look_every
from ..rules.ledger import detached, released
from ..rules.settlement import Settlement
from ..stream_policy import StreamPolicy
from ..surroundings import Decisions, Surroundings
from ..takeover.inherited import Inherited
from .departure import Departure, EndedItem, ended_item, ended_of, settle
from .departures import NOT_RUN, SUCCESS, Departures

#: The end of an item that was lost.
_LOST = Ended(Outcome.LOST)

#: A partition and a position.
PartitionPosition = tuple[Partition, int]


def detach_after(config: TailerConfig, policy: StreamPolicy) -> float:
    """Seconds after which a tailer's items are detached; 0: never."""
    return config.window.detach_after if policy.detaches and config.order == "none" else 0.0


class Detaching:
    """Detached items of one stream tailer, pure. `after`: seconds for which an item may be out (0: for ever). `flights`
    has the flights that are out, by rising number.

    `_later` has the items that wait for a time (monotonic): an item that was lost, which is nowhere else until then, or
    the row of one that a former owner had detached.

    bare adopted items whose payload is nowhere but in their guard
    """

    def __init__(
        self,
        after: float,
        departures: Departures,
        inherited: Inherited,
        flights: dict[int, HandOut],
        seen: Surroundings,
        decided: Decisions,
    ) -> None:
        self._after = after
        self.bare: set[ItemKey] = set()
        self._departures = departures
        self._inherited = inherited
        self._flights = flights
        self._seen = seen
        self._decided = decided
        self._ages = Ages(after)
        self._adopted_since: dict[ItemKey, float] = {}
        self._going: set[ItemKey] = set()  # their rows and guards are being written
        self._ends: dict[ItemKey, EndedItem] = {}  # of items on their way
        self._refused: set[ItemKey] = set()  # they have a row and no guard, so they are not passed
        self._later: list[tuple[float, int, EndedItem | tuple[Partition, LedgerEntry]]] = []
        self._number = count()

    def wait(self) -> float | None:
        """Seconds until the next tick, if nothing happens before; None: nothing waits for one."""
        waits = [look_every(self._after)] if self._after else []
        if self._later:
            waits.append(self._later[0][0] - self._seen.monotonic)
        return max(0.0, min(waits)) if waits else None

    def tick(self) -> list[EndedItem]:
        """Looks at items that are out, and at items that have waited their time; returns the items that are lost
        now."""
        lost: list[EndedItem] = []
        while self._later and self._later[0][0] <= self._seen.monotonic:
            match heappop(self._later)[-1]:
                case EndedItem() as item:
                    lost.append(item.known())
                case (part, row):
                    self._departures.free(part, row, released(row, self._seen.wall))
        if self._after:
            self._look()
        return lost

    # Items to detach.

    def _look(self) -> None:
        now = self._seen.monotonic
        upto = self._ages.look(now, next(reversed(self._flights), 0))
        old: defaultdict[Partition, dict[int, tuple[Items, int, float, int]]] = defaultdict(dict)
        for number, out in self._flights.items():
            if number > upto:
                break
            items: Items = out.place
            for index in out.still_open():
                old[items.part(index)][items.position(index)] = items, index, out.pushed_at, out.flight.fence
        known, self._adopted_since = self._adopted_since, {}
        for items, fence in self._inherited.records():
            key = items.key(0)
            since = self._adopted_since[key] = known.get(key, now)
            if since <= now - self._after:
                old[items.partition][key[1]] = items, 0, self._seen.wall, fence
        for part, outs in old.items():
            part.advance()
            for position in holding_up(outs, part.frontier.newest_settled):
                if not self.knows(part, position) and position not in part.redriven:
                    self._begin(ended_item(*outs[position], NOT_RUN))

    def _begin(self, item: EndedItem) -> None:
        before, history = item.row, item.history(self._seen.wall)
        tries = () if before is None else before.tries
        row = detached(before, item.position, history, item.fence, item.pushed_at, tries)
        self.add(item, before, row)

    def add(self, item: EndedItem, before: LedgerEntry | None, row: LedgerEntry | None, *, runs: bool = True) -> None:
        """Makes the row and the guard of an item durable; then it is passed. See Departures.detach."""
        self._going.add(item.key)
        self._departures.detach(item, before, row, runs=runs)

    def durable(self, batch: list[Departure]) -> list[EndedItem]:
        """Passes items whose rows and guards are there; returns the items that ended meanwhile. Where a row was not as
        it was known, its item is looked at again later; where a guard was refused, its item is not passed, and holds
        the frontier until it ends."""
        passed: defaultdict[Partition, list[int]] = defaultdict(list)
        for each in batch:
            part, position, step, row = each.partition, each.position, each.leg.step, each.leg.row
            self._going.discard(each.key)
            if step is Step.DONE and each.runs and row is not None:
                part.detached[position] = row
                passed[part].append(position)
            elif step is Step.DONE:
                settle([each])
            elif step is Step.REFUSED:
                self._refused.add(each.key)
        for part, positions in passed.items():
            part.settle(sorted(positions), Fate.DELAYED)
        return [self._ends.pop(each.key).known() for each in batch if each.key in self._ends]

    # How they end.

    def knows(self, part: Partition, position: int) -> bool:
        """Whether an item is detached, or about to be."""
        if not (part.detached or self._going or self._refused):
            return False
        key = (part.name, position)
        return position in part.detached or key in self._going or key in self._refused

    def succeeded(self, out: HandOut, indexes: list[int]) -> list[int]:
        """Ends the items that are detached, and returns the others. Quick where nothing is."""
        items: Items = out.place
        part, positions = items.partition, items.batch.positions
        if not (part.detached or self._going or self._refused):
            return indexes
        mine = [index for index in indexes if self.knows(part, positions[index])]
        for index in mine:
            item = ended_of(out, index, SUCCESS)
            if not self.waits(item):
                self._departures.end(item, Fate.SUCCEEDED)
                self.over(item.key)
                out.release((index,))
        return [index for index in indexes if index not in mine] if mine else indexes

    @property
    def some_wait(self) -> bool:
        """Whether any outcome may have to wait."""
        return bool(self._going)

    def waits(self, item: EndedItem) -> bool:
        """Whether an outcome waits until its item's row and guard are durable; then `durable` returns it."""
        if item.key in self._going:
            self._ends[item.key] = item
            return True
        return False

    def over(self, key: ItemKey) -> None:
        """Notes that an item has ended, and that its row is about to say how."""
        self._refused.discard(key)
        self.bare.discard(key)

    def is_bare(self, item: EndedItem) -> bool:
        """Whether an item's payload is nowhere but in its guard."""
        return item.key in self.bare

    def again(self, item: EndedItem, settlement: Settlement) -> None:
        """Has a detached item run again: as a copy, which is its guard where nothing else is known of it."""
        row = item.row
        if self.is_bare(item) and row is not None:
            due = self._seen.wall + settlement.delay
            self._departures.release(item, released(row, due, settlement.failed, settlement.crashes))
        else:
            self._departures.park(item, settlement, self._seen.wall)

    def lost(self, item: EndedItem, not_before: float) -> None:
        """Keeps a detached item that was lost with its session until that time (monotonic): it may run until then, and
        no copy of it starts before; a row's time is by the wall clock, which may jump."""
        self._at(not_before, replace(item, ended=_LOST))

    def over_at(self, time: float, part: Partition, row: LedgerEntry) -> None:
        """Lets the guard of an item that a former owner had detached start at that time (monotonic); the item may run
        until then."""
        self._at(time, (part, row))

    def _at(self, time: float, what: EndedItem | tuple[Partition, LedgerEntry]) -> None:
        heappush(self._later, (time, next(self._number), what))
        self._decided.tick = True

    def read(self, items: Items) -> None:
        """Detaches again items whose records were read although they were detached: they were not passed yet, perhaps
        for want of a guard."""
        part = items.partition
        if not part.has_rows(items.batch.positions):
            return
        for index, position in enumerate(items.batch.positions):
            row = part.rows.get(position)
            if row is not None and row.is_detached:
                item = ended_item(items.one(index), 0, row.first_seen, row.fence, NOT_RUN)
                self.add(item, row, None, runs=self._inherited.runs(items.key(index)))

    # For people.

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[PartitionPosition]:
        """Yields the items that are neither out nor with anybody else."""
        for item in self._ends.values():
            yield item.partition, item.position
        for _, _, what in self._later:
            if isinstance(what, EndedItem):
                yield what.partition, what.position
