"""The pump of stream sources: reads ahead, pushes what has credit, holds the rest by position, moves the checkpoint.

An item is always in one place: in flight, held, being read again, on its way into a store (delay service, dead
letters, results), or settled. The checkpoint follows the settled ones and nothing else: it never waits for an item
that failed, and never passes one that is neither done nor parked (law 3).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, cast

from ...sdk.model.audit import Audit, Fate
from ...sdk.model.demand import Cell
from ...sdk.model.errors import TailraceError
from ...sdk.model.workload import Ended, Outcomes
from ...sdk.source import PartitionSource, StreamBatch, StreamSource
from ...stores.checkpoints.checkpoints import Mark
from ..accounts import Accounts
from ..checkpoint import Checkpoint
from ..counts import Counts
from ..departures.departure import Departure, EndedItem, ended_item, ended_of
from ..departures.departures import NOT_RUN, Departures
from ..departures.detaching import Detaching, Spot, detach_after
from ..departures.expiring import Expiring
from ..departures.settlements import Settlements
from ..hand_out import HandOut
from ..holding import Holding
from ..items import Items, chosen
from ..ledger.rows import Rows
from ..ledger.suspicion import mark_suspects, remember, wait_out
from ..losses import Losses
from ..mapping.target import Target
from ..ordering import Ordering
from ..partition import Partition
from ..reading import Reading
from ..resources import Setup
from ..rules.departure_steps import Way
from ..rules.window import FULL, Room
from ..session import Renewal
from ..takeover.epoch import Epoch
from ..takeover.inherited import Inherited, Record
from ..takeover.left_running import LeftRunning
from ..takeover.succession import Succession
from .pump import Pump

#: A read waits this long for the first item; it ends at once when one comes.
READ_WAIT = 5.0
#: Seconds for the last checkpoint and for leaving the row.
CLOSE_WITHIN = 5.0


class StreamPump(Pump):
    """The pump of one stream. Invariant: `window` counts the payloads in memory: in flight, kept although held, on
    their way into a store."""

    def __init__(self, setup: Setup, counts: Counts, source: StreamSource) -> None:
        super().__init__(setup, counts)
        self.source = source
        self._partitions: dict[str, Partition] = {}
        self._gap = Fate.ABSENT if source.capabilities.holes else Fate.LOST
        self._target = Target(setup.config, parked=setup.kind.name == "due")
        self._reading = Reading(self._target, self.session, self.window, self._partitions)
        name, stores, clock = setup.config.name, setup.environment, setup.clock
        self._epoch = Epoch(stores.ownership, stores.checkpoints, name, setup.sizes, clock, counts.refused, setup.row)
        self._rows = Rows(stores.ledger, self._epoch, name, self._partitions)
        self._departures = Departures(setup, self._rows, counts, self._stayed, self.wake)
        self._losses = Losses(setup.config, stores.drops, clock, counts)
        self._marks: dict[str, Mark] = {}
        self._read_wake = self.new_wake()
        self.expiring = Expiring(setup, self._departures, counts, self.wake)
        self._holding = Holding(self, source, self._partitions, self.session, setup, self.new_wake())
        self._ordering = Ordering(setup.config, self._partitions, self._holding, clock, self._departures)
        inherited = Inherited(self._inherited_ended, self._inherited_lost, self._ordering)
        of_inherited = (self._departures, inherited, clock)
        self._detaching = Detaching(detach_after(setup), *of_inherited, self.flights, self.over)
        self._left_running = LeftRunning(self, name, self._rows, inherited, self._departures, self._detaching, clock)
        ends_by = (self._ordering, self._departures, self._holding, self.expiring, self._detaching)
        self._settlements = Settlements(self.settlement, self.session, clock, *ends_by)
        self._succession = Succession(name, self._epoch, self.session, inherited, setup.sizes, clock, self.wake)
        self._accounts = Accounts(setup.config.name, self._partitions, self._holding, inherited)
        self._commit_wake = self.new_wake()
        self._checkpoint = Checkpoint(source, self._epoch, self._partitions, clock, self._commit_wake, self._moved)

    # Taking and leaving the stream.

    async def open(self) -> None:
        """Takes the source, waiting for its previous owner's lease if need be, and opens it."""
        self._marks = await self._succession.take()
        if self.setup.row and self.setup.row not in self._marks:
            begin = cast(PartitionSource, self.source).begin
            self._marks |= await self._epoch.begin(self.setup.row, await self.connecting(begin, self._reopen))
        for name in self._marks:
            await self._add(name)
        await self.connecting(self._open_source, self._reopen)
        await self._left_running.opened()

    async def _add(self, name: str) -> Partition:
        """A partition that came into being, or that the checkpoint knows."""
        part = Partition(name, self._marks.get(name, Mark(0)), self.window, self.source.capabilities.sparse)
        await self._rows.open(part)
        self._partitions[name] = part
        self._holding.watch(part)
        if self._epoch.left_behind:
            await mark_suspects(self._rows, self.config.name, part, self._epoch.number)
        await self._left_running.found(part)
        return part

    async def _open_source(self) -> None:
        ends = {name: part.frontier.end for name, part in self._partitions.items()}
        await self._checkpoint.opening(self.source.open(ends))

    async def _reopen(self) -> None:
        await self.source.close()
        await self._open_source()

    async def close(self) -> None:
        """Leaves the row empty when nothing can be running any more, so that the next owner need not wait."""
        await self._succession.close()
        await self.source.close()
        with contextlib.suppress(TailraceError, TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN):
                await self._checkpoint.finish()
                await self._rows.sweep()
                await self._succession.leave(self.flights)

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        measuring = self._reading.measure(self, self._succession.inherited.ends_at)
        loops = [self._read(), self._holding.run(), self._checkpoint.run(), measuring, *self._succession.steps()]
        return [*loops, self._rows.run(), *self._departures.steps(), self._detaching.run(), self._left_running.run()]

    # Read.

    async def _read(self) -> None:
        while True:
            self._read_wake.clear()
            room = self._room()
            if not room.items:
                if self.active and (self.session.credit.clogs or not self.window.room(self._reading.span()).items):
                    self._succession.inherited.give_up(self.clock.monotonic())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._ordering.patience):
                        await self._read_wake.wait()
                continue
            read = partial(self.source.read, room.items, room.bytes, READ_WAIT)
            for batch in await self.connecting(read, self._reopen):
                part = self._partitions.get(batch.partition) or await self._add(batch.partition)
                if batch.absent or batch.lost:
                    await self._losses.read(part, batch)
                self._took(part, batch)

    def _room(self) -> Room:
        if not self.active or not self._ordering.may_read:
            return FULL
        return self._holding.within_look_ahead(self._reading.room(self.held))

    def _took(self, part: Partition, batch: StreamBatch) -> None:
        """Items read for the first time in this epoch. Those whose row says that they are elsewhere are not run."""
        run = part.read(batch, self._gap)
        if run is not None or batch.absent or batch.lost or not batch.positions:
            batch = chosen(batch, run) if run is not None else batch
            self._commit_wake.set()
        items = self.items(part, batch)
        self.counts.read += len(items)
        self.counts.unreadable += items.mapped.unreadable
        part.window.take(len(items), items.size)
        if part.rows:
            self._left_running.read(items)
        if not (inherited := self._succession.inherited).awaits_some:
            self._first(items)
            return
        for piece in self._ordering.pieces(items) if inherited.pending else (items,):
            self._first(inherited.took(piece))
        inherited.passed(part)
        self.wake()  # what had ended before it was read may be held by now, and nothing else may happen to offer it

    def _first(self, items: Items) -> None:
        """Items that this epoch may hand out."""
        part, positions = items.partition, items.batch.positions
        if positions and part.rows and part.is_troubled(positions):
            items = self._departures.to_run(items)
        if items:
            self.push_or_hold(items, new=True)

    # Push.

    def items(self, part: Partition, batch: StreamBatch) -> Items:
        """Records as items."""
        return Items(part, batch, self._target.mapping.map(batch))

    def push_or_hold(self, items: Items, *, new: bool = False) -> None:
        """Items in memory; those with credit are pushed, others held. `new` ones pass none that waits as urgently."""
        if items.batch.refused:
            items = self._departures.bury_refused(items)
        items = self._ordering.ready(items)
        if self.expiring.looks:
            items = self.expiring.in_time(items)
        if not items:
            return
        wait_out(items)
        mapped = items.mapped
        credit, counts = self.session.credit, Counter(mapped.cells)
        idle = self.paused or self.draining or not self._succession.may_push  # read before that was so
        rooms = self._holding.rooms(counts) if new and self.config.ranked and not idle else None
        if not credit.closed and not mapped.due and not idle and rooms is None and credit.fits(counts):
            self._push(items, counts)
            return
        going = self._holding.with_credit(items, idle, rooms)
        if going:
            self._push(going, counts if going is items else Counter(going.mapped.cells))

    def _push(self, items: Items, counts: Counter[Cell]) -> None:
        """One hand-out under a new fence."""
        if items.partition.is_troubled(items.batch.positions):
            remember(items)
        self._hand_out(items, counts, self._epoch.next_fence())

    def _hand_out(self, items: Items, counts: Counter[Cell], fence: int, *, taken: bool = False) -> None:
        flight = items.flight(self.next_flight(), fence, self._succession.owned(items), self.config.results)
        items.hand_out()
        self.push(flight, items.mapped.cells, counts, items, taken=taken)
        self._ordering.handed_out(items)

    @property
    def active(self) -> bool:
        """Whether items are read and offered now, as far as there is credit."""
        return self.session.connected and not self.paused and not self.draining and self._succession.may_push

    async def reread(self, part: Partition, positions: list[int]) -> StreamBatch:
        """Items that were read before, those of them that the source still has."""
        return await self.connecting(partial(self.source.reread, part.name, positions), self._reopen)

    async def gone(self, part: Partition, positions: list[int], batch: StreamBatch) -> None:
        """The source has these no more: when that is noted, the frontier passes them."""
        await self._losses.gone(part, positions, batch)
        self.wake()

    # Settle.

    def succeeded(self, out: HandOut, indexes: list[int]) -> None:
        """Passed by the frontier; nothing is written, but of what it passed before."""
        items: Items = out.place
        part, positions = items.partition, items.batch.positions
        indexes = self._detaching.succeeded(out, indexes)
        if len(indexes) < len(positions):
            positions = [positions[index] for index in indexes]
        part.settle(positions, Fate.SUCCEEDED)
        part.window.give(len(indexes), out.release(indexes))
        self.counts.settled += len(indexes)

    def ended(self, out: HandOut, ends: Mapping[int, Ended]) -> None:
        """Items that did not plainly succeed."""
        for index, ended in ends.items():
            self._settlements.ended(ended_of(out, index, ended))

    @property
    def in_flight(self) -> int:
        """Also what was adopted, once it was read."""
        return super().in_flight + len(self._succession.inherited)

    def outcomes_came(self, outcomes: Outcomes) -> None:
        """Also of what was adopted."""
        self._succession.came(outcomes)
        super().outcomes_came(outcomes)

    def over(self, item: EndedItem) -> None:
        """An item that had ended before it was detached, or was lost then."""
        self._settlements.ended(item)

    def _inherited_ended(self, record: Record, ended: Ended) -> None:
        """An adopted item ended; it settles as one that this epoch handed out, but for its fence."""
        self.over(ended_item(record.items, 0, self.clock.wall(), record.fence, ended))

    def _inherited_lost(self, record: Record, not_before: float) -> None:
        self._lost(ended_item(record.items, 0, self.clock.wall(), record.fence, NOT_RUN), not_before)

    def _lost(self, item: EndedItem, not_before: float, *, lost: bool = False) -> None:
        """An item comes back whose session is gone; it may run until that time."""
        if self._detaching.knows(item.partition, item.position):
            self._detaching.lost(item, not_before)
        else:
            self._holding.hold(item.items, item.index, not_before, lost=lost)

    def _stayed(self, way: Way, those: list[Departure]) -> None:
        """Rows are durable of what has not left."""
        match way:
            case Way.DETACH:
                self._detaching.durable(those)
            case Way.FREE:
                self._left_running.freed(those)
            case _:  # what it has behind it: it may run again
                for each in those:
                    if (item := each.item) is not None:
                        self._holding.hold(item.items, item.index, each.not_before)

    def leaving(self) -> Iterator[Spot]:
        """What is on its way to a worker or into a store, and nowhere else."""
        return chain([(each.partition, each.position) for each in self._departures], self._detaching)

    def going(self) -> int:
        """How many that are."""
        return len(self._departures) + len(self._detaching)

    def _moved(self) -> None:
        self._read_wake.set()
        self._rows.moved()

    # What the session asks.

    def held_for(self, flight: int) -> float:
        return self._epoch.held_for()

    def renewal(self) -> Renewal:
        """Every flight that has items out."""
        return Renewal(self.held_for(0), [*self.flights, *self._succession.flights])

    def session_opened(self) -> None:
        """Nothing is pushed to a scheduler before the row names it."""
        self._succession.opened()

    def credit_changed(self) -> None:
        """Limits, gates or functions are new; a function's own priority may give its items another cell."""
        if self._target.functions_changed(self.session.functions):
            for part in self._partitions.values():
                part.rename(self._target.mapping.kind)
        self.wake()

    def session_lost(self, wait: float, unsent: Sequence[int]) -> None:
        """What was out is handed out again when nothing of it can be running any more."""
        now = self.clock.monotonic()
        self._succession.lost(now, wait)
        flights = dict(self.flights)
        self.flights.clear()
        for number, out in flights.items():
            not_before = 0.0 if number in unsent else now + wait
            for index in out.still_open():
                self._lost(ended_of(out, index, NOT_RUN), not_before, lost=not_before > 0)
        self.wake()

    # What people see.

    def may_seek(self) -> None:
        """It has a checkpoint."""

    def audits(self, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        return self._accounts.audits(self.flights, self.leaving(), partition, span)

    @property
    def unaccounted(self) -> int:
        return self._accounts.unaccounted(self.in_flight, self.going())

    @property
    def classes(self) -> dict[str, int]:
        return self._accounts.classes(self.in_flight, self.going())

    @property
    def starting(self) -> str:
        return self._epoch.waiting_for

    @property
    def busy(self) -> bool:
        running = self.flights or self._succession.inherited.running
        return bool(running or self._holding.reading_again or self.going())

    @property
    def held(self) -> int:
        return len(self._holding)

    @property
    def clogged(self) -> str:
        if self.store_failing:
            return self.store_failing
        if self._room().items:
            return ""
        if why := self._target.why_no_credit(self.session.credit, self.session.functions):
            return why
        if self.held and not self.window.room(self._reading.span()).items:
            return f"{self.held} items are held: {self._holding.why()}"
        return ""

    @property
    def store_failing(self) -> str:
        return self._epoch.failing or self._departures.failing or self._losses.failing

    @property
    def held_because(self) -> str:
        return self._holding.why()

    @property
    def functions(self) -> set[str]:
        return super().functions or self._holding.functions()
