"""The pump of what is due: its items are copies, which start only by compare-and-set of their row (L16 to L19).

Between credit and push stands the ledger: copies read their rows, write those that may start under the flight's fence,
and what they won is pushed. The others are over: another copy ran, or runs. Copies that have no row start at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from ...model.audit import Fate
from ...model.demand import Cell, Closed
from ...model.errors import StaleFence
from ...model.ledger import LedgerPlace as Where
from ...model.outcome import Outcome
from ...model.workload import FLIGHT_ITEMS, Ended
from ...stores.checkpoints.checkpoints import Mark
from ..counts import Counts
from ..departures.departure import ended_of
from ..departures.detaching import Spot
from ..hand_out import HandOut
from ..items import Items, joined
from ..ledger.rows import home_of
from ..partition import Partition
from ..resources import Setup
from ..sources.due import DueSource
from ..stream_policy import StreamPolicy
from ..takeover.inherited import Record
from .pump import Pump
from .starting import Starter, Starting, StartStep
from .stream_pump import StreamPump

#: Seconds between two checkpoints. Copies have their rows from the start, by which a restart skips those that it reads
#: again, so checkpoints may wait for each other, and longer after one of many functions: 10 s for 200 of them.
COMMIT_EVERY = 1.0
POLICY = StreamPolicy(starts=True, detaches=False, commit_every=COMMIT_EVERY, commit_of_each=0.05)
#: Ends of items that did not run, or of which it is not known: they come again.
_AGAIN = (Outcome.HELD, Outcome.LOST, Outcome.THROTTLED)
#: Batches of copies that start together.
START_TOGETHER = 256
#: What is read of many functions goes as one from so many items on, or so many bytes: a flight holds twice as many.
TOGETHER_ITEMS = FLIGHT_ITEMS >> 1
TOGETHER_BYTES = 1 << 20


class DuePump(StreamPump):
    """A partition for each function, with a window of its own.

    Invariant: an item that has a row is out only while its row says RUNNING, this epoch, and its flight's fence.
    """

    def __init__(self, setup: Setup, counts: Counts, source: DueSource) -> None:
        super().__init__(setup, counts, source, POLICY)
        self._due = source
        source.on_ready = self._read_wake.set
        self._found: list[Items] = []  # read, and waiting for what is read in the same moment
        self._together = self._together_bytes = 0  # of what was found
        self._starting: list[Starting] = []
        self._ends: list[tuple[Record, Ended]] = []
        self._starter = Starter(self.config.name, self._rows, self._epoch, setup.remembered, setup.clock)
        self._start_wake = asyncio.Event()

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        return [*super().steps(), self._start()]

    @property
    def clogged(self) -> str:
        """One function's full window keeps no other from being read."""
        return self.store_failing

    @property
    def functions(self) -> set[str]:
        return set(self._partitions)

    @property
    def outages(self) -> list[Closed]:
        return [closed for name, closed in self.session.credit.clogs.items() if name in self._partitions]

    @property
    def busy(self) -> bool:
        return bool(self._found or self._starting or self._ends) or super().busy

    async def _add(self, name: str) -> Partition:
        """The rows of what is due are their sources', read when it starts."""
        window = self.config.window.rule()
        part = Partition(name, self._marks.get(name, Mark(0)), window)
        self._core.given(part)
        return part

    def may_seek(self) -> None:
        Pump.may_seek(self)

    async def expect(self, *functions: str) -> None:
        """These may have due items from now on."""
        await self._due.expect(*functions)

    async def _read(self) -> None:
        while True:
            self._read_wake.clear()
            some, left = False, self._core.reading.most if self._see().seen.active else 0
            for name in self._due.ready() if left else ():
                part = self._partitions.get(name) or await self._add(name)
                room = self._core.reading.room_of(part)
                if not room.items:
                    continue
                most = min(left - self._together, room.items), min(TOGETHER_BYTES, room.bytes)
                batch = self._due.at_hand(name, *most)
                if batch is None:
                    batch = await self.connecting(partial(self._due.take, name, *most), self._reopen)
                if batch is not None and batch.positions:
                    self._took(part, batch)
                    some = True
                if self._together >= min(left, TOGETHER_ITEMS) or self._together_bytes >= TOGETHER_BYTES:
                    self._gather()
                    left = self._core.reading.most
                if not left:
                    break
            self._gather()
            if not some:
                await self._read_wake.wait()

    def _first(self, items: Items) -> None:
        """What was read of one function goes with what is read of the others."""
        self.counts.ageing.seen(items.mapped.parked.values())
        self._found.append(items)
        self._together += len(items)
        self._together_bytes += items.size

    def _gather(self) -> None:
        """Pushes what was read of many functions as one, as far as there is credit."""
        found, self._found = self._found, []
        self._together = self._together_bytes = 0
        if found:
            self._see().push_together(found[0] if len(found) == 1 else joined(found))
            self._carry_out()

    def _push(self, items: Items, counts: Counter[Cell]) -> None:
        """They start by their rows, and are handed out then."""
        self._starting.append(Starting(items, counts, self.session.credit))
        self._start_wake.set()

    def leaving(self) -> Iterator[Spot]:
        here = [*self._found, *[each.items for each in self._starting], *[record.items for record, _ in self._ends]]
        return chain(
            super().leaving(), [(items.part(at), position) for items in here for at, position in items.places()]
        )

    def going(self) -> int:
        starting = sum([len(each.items) for each in self._starting])
        return super().going() + self._together + starting + len(self._ends)

    async def _start(self) -> None:
        while True:
            await self._start_wake.wait()
            self._start_wake.clear()
            while self._ends:
                await self._settle_inherited()
            while self._starting:
                together = self._starting[:START_TOGETHER]
                try:
                    steps = await self._starter.ask(together, may_be_adopted=self._may_be_adopted)
                except StaleFence:
                    self.counts.refused()
                    raise
                del self._starting[: len(together)]
                self._see()
                for starting, step in zip(together, steps, strict=True):
                    self._apply(starting, step)
                self.wake()

    def _apply(self, starting: Starting, step: StartStep) -> None:
        if step.over or step.append or step.guard:
            not_run = starting.not_run(self.clock.wall())
            self._core.departures.skip([not_run[index] for index in step.over], Fate.FILTERED)
            for index, row in step.append.items():
                self._core.departures.append_again(not_run[index], row)
            for index, row in step.guard.items():
                self._core.departures.guard_again(not_run[index], row)
        self._hold(starting, step.again)
        self._hold(starting, step.later, self.clock.monotonic() + self.sizes.heartbeat)
        for index, due in step.wait.items():
            self._hold(starting, [index], self.clock.monotonic() + max(1e-6, due - self.clock.wall()))
        for index in step.going:
            if index in step.start:
                starting.as_row_says(index, step.start[index])
        items, counts, credit = starting.items, starting.counts, starting.credit
        if credit is not self.session.credit or not self._succession.may_push:
            credit.give(counts)
            self._hold(starting, step.going)  # another session: they start anew, from the rows that they have now
            return
        if len(step.going) < len(items):
            items = items.chosen(step.going)
            going = Counter(items.mapped.cells)
            credit.give(counts - going)
            counts = going
        for flight in self._flights(items) if items else ():
            those = counts if flight.mapped is items.mapped else Counter(flight.mapped.cells)
            self._core.handed_out(flight)
            self._hand_out(flight, those, step.fence)
            self.counts.ageing.started(flight.mapped.ids)

    def _flights(self, items: Items) -> Iterator[Items]:
        """As few as may be: one, but for a scheduler that knows only flights of one partition."""
        parts = items.parts
        if parts is None or (self.session.reads_parts and any(part is not parts[0] for part in parts)):
            yield items
            return
        places: dict[Partition, list[int]] = {}
        for index, part in enumerate(parts):
            places.setdefault(part, []).append(index)
        for part, mine in places.items():
            yield items.chosen(mine).within(part)

    def _hold(self, starting: Starting, indexes: Iterable[int], not_before: float = 0.0) -> None:
        for index in indexes:
            self._core.holding.hold(starting.items, index, not_before)

    # What was adopted: its copies run under rows that a former owner wrote.

    @property
    def _may_be_adopted(self) -> bool:
        """Whether a row that a former owner left running may be of something that was adopted, and still runs."""
        adopted = self._core.inherited.pending or self._ends or not self._epoch.quiet()
        return self._epoch.adopted and bool(adopted)

    def _adopted_ended(self, record: Record, ended: Ended) -> None:
        self._ends.append((record, ended))
        self._start_wake.set()

    async def _settle_inherited(self) -> None:
        """Reads the row of a copy that a former owner started, then settles it as one of this epoch."""
        record, ended = self._ends[0]
        items, fence = record
        home = home_of(items.mapped.parked[0])
        row = None if home is None else (await self._rows.read([home])).get(home)
        del self._ends[0]
        if home is None or (row is not None and row.place is Where.RUNNING and row.fence == fence):
            if row is not None:
                items.partition.rows[items.position(0)] = row
            self._see().adopted_ended(record, ended)
        else:  # its row went on without it, or this is another copy: the store was put back, and its place given again
            self._adopted_lost(record, 0.0)
        self.wake()

    def ended(self, out: HandOut, ends: Mapping[int, Ended]) -> None:
        """What did not fail waits again."""
        parked = out.place.mapped.parked
        self.counts.ageing.seen([parked[index] for index, end in ends.items() if end.outcome in _AGAIN])
        super().ended(out, ends)

    async def close(self) -> None:
        self.counts.ageing.clear()
        await super().close()

    def succeeded(self, out: HandOut, indexes: list[int]) -> None:
        """Each row says so before its copy is settled."""
        ended = Ended(Outcome.SUCCESS)
        for index in indexes:
            self._core.departures.end(ended_of(out, index, ended), Fate.SUCCEEDED)
        out.release(indexes)
