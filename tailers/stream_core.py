"""The core of a stream tailer: events in, decisions out. Pure: no clock, no source, no store; `Surroundings` has the
time, the credit, and whether anything may be pushed.

An item is always in one place: in flight, held, being read again, on its way into a store (delay service, dead
letters, results), or settled. The way of an item: `read` (chooses the records of a batch that are to be run) → `offer`
(pushes items with credit, holds the others by position) → `succeeded` or `ended` (settled, held again, or a departure)
→ `arrived`. `pumps/stream_pump.py` is the shell: it tells the events, and carries out the decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from ..model.audit import Audit, Fate
from ..model.dead_letter import DeadLetter
from ..model.demand import Cell
from ..model.function_spec import FunctionSpec
from ..model.ledger import LedgerEntry
from ..model.workload import Ended
from ..sdk.source import Capabilities, StreamBatch
from ..stores.checkpoints.checkpoints import Mark
from .copy_starts import CopyStarts, StartStep
from .counts import TailerCounts
from .departures.dead_letters import batch_of, put_letter, room_of
from .departures.departure import Departure, ended_item, ended_of
from .departures.departures import NOT_RUN, Departures
from .departures.detaching import Detaching, PartitionPosition, detach_after
from .departures.expiring import Expiring
from .departures.settlements import SettlementRule, Settlements
from .hand_out import HandOut
from .holding import Holding
from .items import Items, chosen
from .ledger.rows import RowHome
from .ledger.suspicion import add_counts, set_not_before
from .mapping.target import Target
from .ordering import Ordering
from .partition import Partition
from .position_audit import PositionAudit
from .reading import Reading
from .resources import Setup
from .rules.departure_steps import Way
from .rules.letter_waits import LetterWaits
from .rules.pieces import PIECE_BYTES, pieces
from .rules.window import FULL, ReadRoom, Window
from .stream_policy import StreamPolicy
from .surroundings import Decisions, Push, Surroundings
from .takeover.inherited import Inherited, InheritedItem
from .takeover.orphans import Orphans


class StreamCore:
    """The state of one stream tailer. `flights` are out; `settlement` decides on an item that ended (Pump.settlement).
    `adopted` is called with an adopted item that ended, `lost` with one whose session is gone and with the time before
    which it must not start.

    batches  number of batches read
    copies   the copies that are not handed out yet; None: this tailer reads no copies

    Invariant: `window` counts the payloads in memory: in flight, kept although held, on their way into a store.
    """

    def __init__(
        self,
        setup: Setup,
        counts: TailerCounts,
        capabilities: Capabilities,
        window: Window,
        flights: dict[int, HandOut],
        settlement: SettlementRule,
        adopted: Callable[[InheritedItem, Ended], None],
        lost: Callable[[InheritedItem, float], None],
        policy: StreamPolicy,
    ) -> None:
        config = setup.config
        self.seen = seen = Surroundings()
        self.decided = decided = Decisions()
        self.partitions: dict[str, Partition] = {}
        self.target = Target(config, parked=setup.kind.name == "due")
        self.reading = Reading(self.target, seen, window, self.partitions)
        of_source = Fate.ABSENT if capabilities.holes else Fate.LOST
        self._gap = of_source if policy.gap is None else policy.gap
        self._config = config
        self._sparse = capabilities.sparse
        self._window = window
        self._flights = flights
        self._counts = counts
        self._jump = policy.jump
        self.batches = 0
        self.departures = Departures(config.name, counts, seen, decided, self._stayed, redrives=policy.redrives)
        self.expiring = Expiring(setup, self.departures, counts, seen)
        self.holding = Holding(config, self.partitions, seen, decided, rereads=capabilities.rereads)
        self.ordering = Ordering(config, self.partitions, self.holding, seen, self.departures)
        self.inherited = Inherited(adopted, lost, self.ordering)
        self.detaching = Detaching(
            detach_after(config, policy), self.departures, self.inherited, flights, seen, decided
        )
        self.copies: CopyStarts | None = None
        if policy.copies:
            later = setup.sizes.heartbeat
            self.copies = CopyStarts(later, counts.ageing, self.departures, self.holding, seen, decided)
        self.orphans = Orphans(
            config.name,
            self.target,
            seen,
            departures=self.departures,
            inherited=self.inherited,
            detaching=self.detaching,
        )
        self._settlements = Settlements(
            settlement,
            seen,
            ordering=self.ordering,
            departures=self.departures,
            holding=self.holding,
            expiring=self.expiring,
            detaching=self.detaching,
        )
        self.letter_waits: LetterWaits[PartitionPosition] = LetterWaits()
        self.position_audit = PositionAudit(config.name, self.partitions, self.holding, self.inherited)

    # Partitions.

    def partition(self, name: str, mark: Mark) -> Partition:
        """A partition that is new, or that the checkpoint knows; this tailer owns it once it is `given`."""
        window = self._window if self.copies is None else self._config.window.rule()
        return Partition(name, mark, window, self._sparse)

    def given(self, part: Partition) -> None:
        """Takes a partition, which this tailer owns from now on."""
        self.partitions[part.name] = part
        self.holding.watch(part)

    # Read.

    @property
    def room(self) -> ReadRoom:
        """The room for the next read."""
        if self._waits_to_jump or not self.seen.active or not self.ordering.may_read:
            return FULL
        return self.holding.within_look_ahead(self.reading.room(len(self.holding)))

    def cannot_read(self) -> None:
        """Hears that there is no room to read. An adopted item that cannot be read before something is handed out is
        given up, and runs again."""
        if self._waits_to_jump:
            self.decided.commit = True  # which advances the frontiers
        if self.seen.active and (self.seen.credit.clogs or not self._window.room(self.reading.span()).items):
            self.inherited.give_up(self.seen.monotonic)

    @property
    def _waits_to_jump(self) -> bool:
        """Whether a gap comes next that is wider than the window, and something before it is not settled."""
        if self._jump is None or self._sparse:
            return False
        ends = {name: part.frontier.end for name, part in self.partitions.items()}
        return self._jump(ends) > self._config.window.positions and self.reading.span() > 0

    def items(self, part: Partition, batch: StreamBatch) -> Items:
        """Records as items; those that are redriven, as their letters say."""
        mapped = self.target.mapping.map(batch)
        if part.redriven:
            for index, position in enumerate(batch.positions):
                if (letter := part.redriven.get(position)) is not None:
                    put_letter(mapped, index, letter, self.target.mapping.kind(letter.kind))
        return Items(part, batch, mapped)

    def read(self, part: Partition, batch: StreamBatch) -> None:
        """Takes items that are read for the first time in this epoch. Items that are elsewhere, by their row, are not
        run."""
        self.batches += 1
        run = part.read(batch, self._gap)
        if run is not None or batch.absent or batch.lost or not batch.positions:
            self.decided.commit = True
        items = self.items(part, chosen(batch, run) if run is not None else batch)
        self._counts.read += len(items)
        self._counts.unreadable += items.mapped.unreadable
        part.window.take(len(items), size := items.size)
        self.holding.saw(len(items), size)
        if part.rows:
            self.detaching.read(items)
        if not self.inherited.awaits_some:
            self._first(items)
            return
        for piece in self.ordering.pieces(items) if self.inherited.pending else (items,):
            self._first(self.inherited.took(piece))
        self.inherited.passed(part)
        self.decided.wake = True  # what had ended before it was read may be held by now, and nothing else may offer it

    def _first(self, items: Items) -> None:
        """Takes items that this epoch may hand out, once the ledger does not say otherwise."""
        part, positions = items.partition, items.batch.positions
        if positions and part.rows and part.is_troubled(positions):
            items = self.departures.to_run(items)
        if not items:
            return
        if self.copies is None:
            self.push_or_hold(items, new=True)
        else:
            self.copies.read(items)

    def redrive(self, part: Partition, letters: Sequence[DeadLetter]) -> None:
        """Takes items that died here and were redriven: each stands in the line of its key once more, before those that
        came after it. One that a former owner had running, and that was adopted, goes on."""
        letters = sorted(letters, key=lambda letter: letter.position)
        part.redrive(letters)
        items = self.items(part, batch_of(part.name, letters))
        part.window.take(len(items), items.size)
        for piece in self.ordering.pieces(items) if self.inherited.pending else (items,):
            if going := self.inherited.took(piece):
                self.push_or_hold(going)
        self.decided.wake = True

    # Push.

    def push_or_hold(self, items: Items, *, new: bool = False) -> None:
        """Pushes items that have credit, and holds the others; all are in memory. `new` items pass no item that waits
        and is as urgent."""
        if items.batch.refused:
            items = self.departures.bury_refused(items)
        items = self.ordering.ready(items)
        if self.expiring.looks:
            items = self.expiring.in_time(items)
        if not items:
            return
        set_not_before(items)
        mapped, idle = items.mapped, self.seen.idle
        credit, counts = self.seen.credit, Counter(mapped.cells)
        rooms = self.holding.rooms(counts) if new and self._config.ranked and not idle else None
        if not credit.closed and not mapped.due and not idle and rooms is None and credit.fits(counts):
            self._push(items, counts)
            return
        going = self.holding.with_credit(items, idle, rooms)
        if going:
            self._push(going, counts if going is items else Counter(going.mapped.cells))

    def push_together(self) -> None:
        """Pushes the copies that were read, of all functions, if they have credit, and holds the others."""
        items = None if self.copies is None else self.copies.gather()
        if items is None:
            return
        mapped = items.mapped  # what cannot be read names no function, so it stays
        credit, counts = self.seen.credit, Counter(mapped.cells)
        all_due = max(mapped.due.values(), default=0.0) <= self.seen.wall
        if all_due and not self.seen.idle and not credit.closed and credit.fits(counts):
            self._push(items, counts)
            return
        going = self.holding.with_credit(items, self.seen.idle)
        if going:
            self._push(going, Counter(going.mapped.cells))

    def _push(self, items: Items, counts: Counter[Cell]) -> None:
        self.seen.credit.take(counts)
        if self.copies is not None:
            self.copies.begin(items, counts)
            return
        sizes = [*map(len, items.batch.payloads)]
        if sum(sizes) <= PIECE_BYTES:
            self._push_flight(items, counts)
            return
        for piece in pieces(sizes):
            some = items.chosen(piece)
            self._push_flight(some, Counter(some.mapped.cells))

    def _push_flight(self, items: Items, counts: Counter[Cell]) -> None:
        if items.partition.is_troubled(items.batch.positions):
            add_counts(items)
            self._counts.ageing.started(items.mapped.ids)
        self._hand_out(Push(items, counts))

    def started(self, steps: Sequence[StartStep]) -> None:
        """Hears which steps the first batches of copies took on their start."""
        assert self.copies is not None
        for push in self.copies.started(steps):
            self._hand_out(push)

    def _hand_out(self, push: Push) -> None:
        push.items.hand_out()
        self.ordering.handed_out(push.items)
        self.decided.pushes.append(push)

    def offer(self) -> None:
        """Pushes held items as far as credit, gates and their times allow it."""
        for part, batch, unread in self.holding.expired():
            if batch.positions:
                self.push_or_hold(self.items(part, batch))  # which finds that they are over
            if unread:
                self.expiring.unread(part, unread)
        for part, batch in self.holding.offered():
            self.push_or_hold(self.items(part, batch))

    def reread(self, part: Partition, positions: list[int], batch: StreamBatch) -> None:
        """Takes held items that were read again, since their payload had been released. `batch` has those that the
        source still has."""
        self.holding.reread(part, positions)
        if batch.positions:
            part.window.take(len(batch.positions), sum(map(len, batch.payloads)))
            self.push_or_hold(self.items(part, batch))

    # Settle.

    def succeeded(self, out: HandOut, indexes: list[int]) -> None:
        """Settles items that plainly succeeded, so that the frontier passes them. Nothing is written, except for copies
        and for items that it had passed while they ran."""
        if self.copies is not None:
            self.copies.succeeded(out, indexes)
            return
        items: Items = out.place
        part, positions = items.partition, items.batch.positions
        indexes = self.detaching.succeeded(out, indexes)
        if part.redriven:
            indexes = self.departures.redriven(out, indexes)
        if len(indexes) < len(positions):
            positions = [positions[index] for index in indexes]
        if part.is_troubled(positions):
            self._counts.ageing.over(*[items.mapped.ids[index] for index in indexes])
        part.settle(positions, Fate.SUCCEEDED)
        if self.letter_waits:
            self.letter_waits.over([(part, position) for position in positions])
        part.window.give(len(indexes), out.release(indexes))
        self._counts.settled += len(indexes)

    def ended(self, out: HandOut, ends: Mapping[int, Ended]) -> None:
        """Decides on items that did not plainly succeed."""
        if self.copies is not None:
            self.copies.ended(out, ends)
        for index, ended in ends.items():
            self._settlements.ended(ended_of(out, index, ended))

    def adopted_ended(self, record: InheritedItem, ended: Ended) -> None:
        """Settles an adopted item that ended like one that this epoch handed out, except for its fence."""
        if self.copies is None:
            self._adopted_ended(record, ended)
        else:
            self.copies.adopted_ended(record, ended)

    def adopted_row(self, home: RowHome | None, row: LedgerEntry | None) -> None:
        """Settles the first adopted copy that has ended, by its row as it was read; `home`: the place of that row."""
        assert self.copies is not None
        record, ended, settles = self.copies.settles(home, row)
        if settles:
            self._adopted_ended(record, ended)
        else:
            self.adopted_lost(record, 0.0)

    def _adopted_ended(self, record: InheritedItem, ended: Ended) -> None:
        self._settlements.ended(ended_item(record.items, 0, self.seen.wall, record.fence, ended))

    def adopted_lost(self, record: InheritedItem, not_before: float) -> None:
        """Has an adopted item run again, not before a time (monotonic)."""
        self._lost(record.items, 0, self.seen.wall, record.fence, not_before)

    def session_lost(self, wait: float, unsent: Sequence[int]) -> None:
        """Hands out again everything that was out, once none of it can be running any more: items of `unsent` flights
        at once, the others after `wait` seconds."""
        flights = dict(self._flights)
        self._flights.clear()
        for number, out in flights.items():
            not_before = 0.0 if number in unsent else self.seen.monotonic + wait
            for index in out.still_open():
                self._lost(out.place, index, out.pushed_at, out.flight.fence, not_before, lost=not_before > 0)

    def _lost(
        self, items: Items, index: int, pushed_at: float, fence: int, not_before: float, *, lost: bool = False
    ) -> None:
        """Takes back an item whose session is gone; its former run may go on until `not_before`."""
        if self.detaching.knows(items.part(index), items.position(index)):
            self.detaching.lost(ended_item(items, index, pushed_at, fence, NOT_RUN), not_before)
        else:
            self.holding.hold(items, index, not_before, lost=lost, runs=not_before > 0)

    def _stayed(self, way: Way, those: list[Departure]) -> None:
        """Hears that the rows of items that stay here are durable."""
        match way:
            case Way.DETACH:
                for item in self.detaching.durable(those):
                    self._settlements.ended(item)
            case Way.FREE:
                self._freed(those)
            case Way.BURY:
                self._no_room(those)
            case _:  # the attempts that it has behind it are noted: it may run again
                for each in those:
                    if each.item is not None:
                        self.holding.hold(each.item.items, each.item.index, each.not_before)

    def _no_room(self, those: list[Departure]) -> None:
        """Holds items whose letters found no room."""
        now = self.seen.monotonic
        for each in those:
            if each.item is not None:
                before = each.item.history(self.seen.wall)
                if each.item.ended.crashed and not before.crashes:  # it runs alone from now on
                    each.partition.troubles[each.position] = before._replace(crashes=1)
                pause = self.letter_waits.came((each.partition, each.position), room_of(each.item.kind), now)
                self.holding.hold(each.item.items, each.item.index, now + pause)

    def room_for_letters(self, items: Sequence[PartitionPosition]) -> None:
        """Has items run again for whose letters there may be room now."""
        for part, position in items:
            if part.held.hasten(position):
                self.decided.look = True

    def _freed(self, those: list[Departure]) -> None:
        """Forgets the rows of items whose guards may start, by their durable rows."""
        for each in those:
            part, position = each.partition, each.position
            if position < part.frontier.end and not self.detaching.knows(part, position):
                part.rows.pop(position, None)  # it is settled

    def tick(self) -> None:
        """Detaches items that have been out for long, and takes back lost items when their time is over."""
        for item in self.detaching.tick():
            self._settlements.ended(item)

    def functions_changed(self, functions: Mapping[str, FunctionSpec]) -> None:
        """Moves held items to other cells where the priority of their function changed."""
        if self.target.functions_changed(functions):
            for part in self.partitions.values():
                part.rename(self.target.mapping.kind)

    # For people.

    def leaving(self, departing: Iterator[Departure]) -> Iterator[PartitionPosition]:
        """The positions of items that are on their way to a worker or into a store, and nowhere else."""
        gone = [(each.partition, each.position) for each in departing if not each.runs]
        return chain(gone, self.detaching, self.copies or ())

    @property
    def going(self) -> int:
        """Number of items on their way to a worker or into a store, and nowhere else."""
        return len(self.departures) + len(self.detaching) + len(self.copies or ())

    def audits(
        self, leaving: Iterator[PartitionPosition], partition: str | None = None, span: tuple[int, int] | None = None
    ) -> list[Audit]:
        """The audit of every position; items `leaving` are on their way to a worker or into a store."""
        return self.position_audit.audits(self._flights, leaving, partition, span)
