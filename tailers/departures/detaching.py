"""Items that run long are detached: they get a row in the ledger and a guard, a copy in the delay service; then the
frontier passes them while they run on (rules/detached.py says when, rules/ledger.py what the row says).

Invariants: an item is passed only when its row and its guard are durable, in that order, so that a row without a guard
is always of an item that whoever comes next reads again. It is handed out by its source no more: what is to run again
after it was lost, throttled or failed is a copy. Its row is released, so that a copy may start, only when nothing of it
can be running any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple, Protocol

from ...sdk.clock import Clock
from ...sdk.model.audit import Fate
from ...sdk.model.errors import UserError
from ...sdk.model.ledger import LedgerEntry
from ...sdk.model.outcome import Outcome
from ...sdk.model.workload import Ended
from ..hand_out import HandOut
from ..items import ItemKey, Items
from ..ledger.rows import RowChange, RowHome, Rows
from ..partition import Partition
from ..resources import Setup
from ..rules.detached import Ages, holding_up, look_every
from ..rules.ledger import detached, released
from ..rules.settlement import Settlement
from ..takeover.inherited import Inherited, out_of
from .departure import Departing, Tag, departing, settle
from .departures import Departures
from .durable import DurableWriter
from .parking import Parking

#: What is said of an item that has not ended, and of one that was lost.
_OUT = Ended(Outcome.HELD)
_LOST = Ended(Outcome.LOST)
SUCCESS = Ended(Outcome.SUCCESS)

#: A partition and a position.
Spot = tuple[Partition, int]
#: An outcome: the hand-out, the place in it, and how it ended.
End = tuple[HandOut, int, Ended]


class DetachingPump(Protocol):
    """The pump. `flights` are out, by rising number; `over` is told of an outcome as if it had come just now."""

    flights: dict[int, HandOut]

    def over(self, end: End) -> None: ...

    def wake(self) -> None: ...


class Going(NamedTuple):
    """An item on its way: its row as it was read and as it shall be (`written`: it is so). `runs`: below this owner;
    else where nobody hears of it, and only its guard is wanted."""

    item: Departing
    before: LedgerEntry | None
    row: LedgerEntry
    written: bool = False
    runs: bool = True

    @property
    def key(self) -> ItemKey:
        """Which item it is."""
        return self.item.key


def detach_after(setup: Setup) -> float:
    """Seconds after which a pump's items are detached; 0: never. What is due has its rows from the start."""
    config = setup.config
    ordered = config.order != "none" or setup.kind.name == "due"
    return 0.0 if ordered else config.window.detach_after


class Detaching:
    """Detached items of one stream tailer. `after`: seconds for which an item may be out (0: for ever).

    `_later` has what waits for a time (monotonic), and which item is nowhere else until then.

    bare  of what was adopted, those whose payload is nowhere but in their guard
    """

    def __init__(
        self,
        owner: DetachingPump,
        after: float,
        name: str,
        rows: Rows,
        departures: Departures,
        delay: Parking,
        inherited: Inherited,
        clock: Clock,
    ) -> None:
        self.after = after
        self.bare: set[ItemKey] = set()
        self._owner = owner
        self._name = name
        self._rows = rows
        self._departures = departures
        self._delay = delay
        self._inherited = inherited
        self._clock = clock
        self._ages = Ages(after)
        self._adopted_since: dict[ItemKey, float] = {}
        self._writer: DurableWriter[Going, Going] = DurableWriter(self._write, self._durable, gathering=True)
        self._going: dict[ItemKey, Going] = {}
        self._ends: dict[ItemKey, End] = {}  # of what is on its way
        self._refused: set[ItemKey] = set()  # they have a row and no guard, so they are not passed
        self._rowed: set[ItemKey] = set()  # of what is being written: its row is durable, or that and its guard
        self._guarded: set[ItemKey] = set()
        self._later: list[tuple[float, int, Spot | None, Callable[[], None]]] = []
        self._number = count()
        self._wake = asyncio.Event()

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops to run side by side."""
        return [self._run(), self._writer.run()]

    async def _run(self) -> None:
        """Looks now and then at what is out, and at once at what has waited its time."""
        every = look_every(self.after) if self.after else None
        while True:
            first = self._later[0][0] - self._clock.monotonic() if self._later else None
            waits = [seconds for seconds in (every, first) if seconds is not None]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(waits)) if waits else None):
                    await self._wake.wait()
            self._wake.clear()
            while self._later and self._later[0][0] <= self._clock.monotonic():
                heappop(self._later)[-1]()
            if self.after:
                self._look()

    # What is detached.

    def _look(self) -> None:
        now = self._clock.monotonic()
        upto = self._ages.look(now, next(reversed(self._owner.flights), 0))
        old: defaultdict[Partition, dict[int, tuple[HandOut, int]]] = defaultdict(dict)
        for number, out in self._owner.flights.items():
            if number > upto:
                break
            items: Items = out.place
            for index in out.still_open():
                old[items.part(index)][items.position(index)] = out, index
        known, self._adopted_since = self._adopted_since, {}
        for record in self._inherited.records():
            key = record.items.key(0)
            since = self._adopted_since[key] = known.get(key, now)
            if since <= now - self.after:
                old[record.items.partition][key[1]] = out_of(record, self._clock.wall()), 0
        for part, outs in old.items():
            part.advance()
            for position in holding_up(outs, part.frontier.newest_settled):
                if not self.knows(part, position):
                    self._begin(*outs[position])

    def _begin(self, out: HandOut, index: int) -> None:
        item = departing(out.place, index, out.pushed_at, out.flight.fence, _OUT)
        before, history = item.row, item.history(self._clock.wall())
        tries = () if before is None else before.tries
        row = detached(before, item.position, history, item.fence, out.pushed_at, tries)
        self.add(Going(item, before, row))

    def add(self, going: Going) -> None:
        """An item whose row and guard are to be durable; then it is passed."""
        self._going[going.key] = going
        self._writer.add(going, len(going.item.payload), going)

    async def _write(self, batch: list[Going]) -> None:
        """Rows first. Where a row is not as it was known, its item is looked at again later."""
        fresh = [each for each in batch if not each.written]
        changes = [RowChange(self._home(each.item), each.before, each.row) for each in fresh]
        answers = await self._rows.write(changes)
        stand = [each for each, row in zip(fresh, answers, strict=True) if row == each.row]
        stand += [each for each in batch if each.written]
        self._rowed.update(each.key for each in stand)
        if stand:
            await self._guard(stand)

    async def _guard(self, items: list[Going]) -> None:
        """What the delay service refuses for good is not passed, and holds the frontier until it ends."""
        guards = [self._departures.guard(each.item, each.row) for each in items]
        try:
            await self._delay.park(guards)
        except UserError:
            for each, guard in zip(items, guards, strict=True):
                with contextlib.suppress(UserError):
                    await self._delay.park([guard])
                    self._guarded.add(each.key)
        else:
            self._guarded.update(each.key for each in items)

    def _durable(self, batch: list[Going]) -> None:
        passed: defaultdict[Partition, list[int]] = defaultdict(list)
        for each in batch:
            part, position = each.item.partition, each.item.position
            del self._going[each.key]
            if each.key in self._guarded and each.runs:
                part.detached[position] = each.row
                passed[part].append(position)
            elif each.key in self._guarded:
                settle([each.item.tag(Fate.DELAYED)])
            elif each.key in self._rowed:
                self._refused.add(each.key)
        for part, positions in passed.items():
            part.settle(sorted(positions), Fate.DELAYED)
        self._rowed.clear()
        self._guarded.clear()
        for end in [self._ends.pop(each.key) for each in batch if each.key in self._ends]:
            self._owner.over(end)
        self._owner.wake()

    def _home(self, item: Departing) -> RowHome:
        return RowHome(self._name, *item.key)

    # How they end.

    def knows(self, part: Partition, position: int) -> bool:
        """Whether an item is detached, or about to be."""
        if not (part.detached or self._going or self._refused):
            return False
        key = (part.name, position)
        return position in part.detached or key in self._going or key in self._refused

    def succeeded(self, out: HandOut, indexes: list[int]) -> list[int]:
        """Takes those of the items that are detached, and returns the others. Quick where nothing is."""
        items: Items = out.place
        part, positions = items.partition, items.batch.positions
        if not (part.detached or self._going or self._refused):
            return indexes
        mine = [index for index in indexes if self.knows(part, positions[index])]
        for index in mine:
            if not self.waits(out, index, SUCCESS):
                item = departing(items, index, out.pushed_at, out.flight.fence, SUCCESS)
                self._departures.end(item, Fate.SUCCEEDED)
                self.over(item.key)
                out.release((index,))
        return [index for index in indexes if index not in mine] if mine else indexes

    @property
    def some_wait(self) -> bool:
        """Whether any outcome may have to wait."""
        return bool(self._going)

    def waits(self, out: HandOut, index: int, ended: Ended) -> bool:
        """Whether an outcome waits until its item's row and guard are durable; then the owner is told of it again."""
        items: Items = out.place
        key = items.key(index)
        if key in self._going:
            self._ends[key] = out, index, ended
        return key in self._going

    def over(self, key: ItemKey) -> None:
        """An item has ended, and its row is about to say how."""
        self._refused.discard(key)
        self.bare.discard(key)

    def is_bare(self, item: Departing) -> bool:
        """Whether an item's payload is nowhere but in its guard."""
        return item.key in self.bare

    def again(self, item: Departing, settlement: Settlement) -> None:
        """A detached item is to run again: as a copy, which is its guard where nothing else is known of it."""
        row = item.row
        if self.is_bare(item) and row is not None:
            due = self._clock.wall() + settlement.delay
            self._departures.release(item, released(row, due, settlement.failed, settlement.crashes))
        else:
            self._departures.park(item, settlement, self._clock.wall())

    def lost(self, out: HandOut, index: int, not_before: float) -> None:
        """A detached item was lost with its session. It may run until that time (monotonic), and no copy of it starts
        before: what a row says is by the wall clock, which may jump."""
        items: Items = out.place
        spot = (items.part(index), items.position(index))
        self.at(not_before, lambda: self._owner.over((out, index, _LOST)), spot)

    def at(self, time: float, call: Callable[[], None], spot: Spot | None = None) -> None:
        """Calls something at a time (monotonic); `spot`: the item that is nowhere else until then."""
        heappush(self._later, (time, next(self._number), spot, call))
        self._wake.set()

    # What people see.

    @property
    def failing(self) -> str:
        """Why a store refuses; empty when none does."""
        return self._writer.why

    def __len__(self) -> int:
        return sum(1 for _ in self.tags())

    def tags(self) -> Iterator[Tag]:
        """The items that are neither out nor with anybody else."""
        for (_, position), (out, index, _) in self._ends.items():
            yield Tag(out.place.part(index), position, 0, Fate.DELAYED)
        for each in self._going.values():
            if not each.runs:
                yield each.item.tag(Fate.DELAYED)
        for _, _, spot, _ in self._later:
            if spot is not None:
                yield Tag(*spot, 0, Fate.DELAYED)
