"""The pump of stream sources: reads ahead, pushes what has credit, holds the rest by position, moves the checkpoint.

An item is always in one place: in flight, held, being read again, on its way into a store (delay service, dead
letters, results), or settled. The checkpoint follows the settled ones and nothing else: it never waits for an item
that failed, and never passes one that is neither done nor parked (law 3).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter, defaultdict
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..sdk.model.demand import Cell
from ..sdk.model.errors import NotConnected, TailraceError
from ..sdk.model.outcome import Outcome
from ..sdk.model.priority import DEFAULT_PRIORITY, Priority
from ..sdk.model.workload import FLIGHT_ITEMS, Ended, Extra, Flight, Kind
from ..sdk.source import StreamBatch, StreamSource
from ..stores.checkpoints.checkpoints import Mark
from .departures import Departing, Departures, Tag
from .epoch import Epoch
from .mapping import FieldMapping, Mapped, Mapping, ParkedMapping
from .partition import Kept, Partition, chosen
from .pump import Counts, Out, Pump, Setup
from .rules.credit import Credit
from .rules.settlement import Action, Family, History, settle
from .rules.window import FULL, Room
from .session import Renewal

#: A read waits this long for the first item; it ends at once when one comes.
READ_WAIT = 5.0
#: Checkpoint writes begin at least this far apart, seconds.
COMMIT_EVERY = 0.02
#: A stream behind the checkpoint is trimmed at most this often, seconds.
TRIM_EVERY = 1.0


@runtime_checkable
class Trimmed(Protocol):
    """A source that forgets what its checkpoint has passed."""

    async def settled_below(self, partition: str, position: int) -> None: ...


class Place(NamedTuple):
    """Where the items of a flight came from."""

    partition: Partition
    batch: StreamBatch
    mapped: Mapped


@dataclass(frozen=True, slots=True, eq=False)
class Again:
    """Held items of one cell that are to be read again; their credit is reserved, with the session of that time."""

    part: Partition
    cell: Cell
    positions: list[int]
    credit: Credit


class StreamPump(Pump):
    """Invariant: `window` counts the payloads in memory: in flight, kept although held, on their way into a store."""

    def __init__(self, setup: Setup, counts: Counts, source: StreamSource) -> None:
        super().__init__(setup, counts)
        self.source = source
        self._partitions: dict[str, Partition] = {}
        self._mapping: Mapping = (
            ParkedMapping() if setup.kind.name == "due" else FieldMapping(setup.config, self._own_priority)
        )
        self._priorities: dict[str, int] = {}
        self._only_cell = isinstance(setup.config.function, str) and isinstance(setup.config.priority, str | None)
        self._departures = Departures(
            setup.config.name, setup.environment, setup.parking, setup.clock, counts, self._departed
        )
        self._epoch = Epoch(setup.environment.checkpoints, setup.config.name, setup.sizes, setup.clock)
        self._again: list[Again] = []
        self._reading_again = 0
        self._kept_items = 0
        self._kept_bytes = 0
        self._trimmed_at = 0.0
        self._read_wake, self._offer_wake, self._commit_wake = self.new_wake(), self.new_wake(), self.new_wake()

    # Taking and leaving the stream.

    async def open(self) -> None:
        """Takes the source, waiting for its previous owner's lease if need be, and opens it."""
        marks = await self._epoch.take(lambda: self.busy)
        self._partitions = {name: Partition(name, mark) for name, mark in marks.items()}
        await self.connecting(self._open_source, self._reopen)

    async def _open_source(self) -> None:
        await self.source.open({name: part.frontier.end for name, part in self._partitions.items()})

    async def _reopen(self) -> None:
        await self.source.close()
        await self._open_source()

    async def close(self) -> None:
        """Leaves the stream clean when nothing is running, so that the next owner need not wait."""
        await self.source.close()
        with contextlib.suppress(TailraceError):
            if not self.busy:
                await self._commit()
                await self._epoch.release()

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops that run side by side."""
        return [self._read(), self._offer(), self._checkpoint(), self._heartbeat(), *self._departures.steps()]

    # Read.

    async def _read(self) -> None:
        while True:
            self._read_wake.clear()
            room = self._room()
            if not room.items:
                await self._read_wake.wait()
                continue
            for batch in await self.connecting(
                partial(self.source.read, room.items, room.bytes, READ_WAIT), self._reopen
            ):
                self._took(batch)

    def _room(self) -> Room:
        """How much may be read: window, positions and credit."""
        if self.paused or self.draining or not self.session.connected:
            return FULL
        credit = self.session.credit
        room = self.window.room(self._span())
        most = credit.total_room
        if self._only_cell:
            kind = self._mapping.kind(Kind(str(self.config.function), self._set_priority()))
            most = 0 if credit.is_closed(kind) else min(most, credit.batch_room(Cell(kind.function, kind.priority)))
        items = min(room.items, most, FLIGHT_ITEMS)
        return Room(items, room.bytes) if items else FULL

    def _span(self) -> int:
        span = 0
        for part in self._partitions.values():
            if part.frontier.span >= FLIGHT_ITEMS:
                part.frontier.advance()
            span += part.frontier.span
        return span

    def _took(self, batch: StreamBatch) -> None:
        """Items read for the first time in this epoch."""
        part = self._partitions.get(batch.partition)
        if part is None:
            part = self._partitions[batch.partition] = Partition(batch.partition, Mark(0))
        run = part.frontier.read(batch.positions, batch.absent)
        if run is not None or batch.absent:
            batch = chosen(batch, run) if run is not None else batch
            self._commit_wake.set()
        if batch.positions:
            self.counts.read += len(batch.positions)
            self.window.take(len(batch.positions), sum(map(len, batch.payloads)))
            self._push_or_hold(part, batch)

    # Push.

    def _push_or_hold(self, part: Partition, batch: StreamBatch) -> None:
        """Items in memory: those with credit are pushed, the others held."""
        mapped = self._mapping.map(batch)
        credit = self.session.credit
        counts = Counter(mapped.cells)
        idle = self.paused or self.draining  # read before it was told so
        if not credit.closed and not mapped.due and not idle and credit.fits(counts):
            self._push(part, batch, mapped, counts)
            return
        now, wall = self.clock.monotonic(), self.clock.wall()
        going: list[int] = []
        rooms: dict[Cell, int] = {}
        total = 0 if idle else credit.total - credit.out
        for index, cell in enumerate(mapped.cells):
            due = mapped.due.get(index, 0.0)
            if due > wall:
                self._hold(part, mapped.kinds[index], batch, index, now + due - wall)
                continue
            room = rooms[cell] if cell in rooms else credit.room(cell)
            if room > 0 and total > 0 and not credit.is_closed(mapped.kinds[index]):
                going.append(index)
                rooms[cell] = room - 1
                total -= 1
            else:
                self._hold(part, mapped.kinds[index], batch, index)
        if len(going) == len(mapped.cells):
            self._push(part, batch, mapped, counts)
        elif going:
            batch = chosen(batch, going)
            mapped = self._mapping.map(batch)
            self._push(part, batch, mapped, Counter(mapped.cells))

    def _push(self, part: Partition, batch: StreamBatch, mapped: Mapped, counts: Counter[Cell]) -> None:
        """One hand-out under a new fence."""
        if part.troubles:
            for index, position in enumerate(batch.positions):
                trouble = part.troubles.get(position)
                if trouble is not None and trouble.crashes:
                    extra = mapped.extras.setdefault(index, Extra())
                    extra.crashes, extra.alone = trouble.crashes, True
        flight = Flight(
            number=self.next_flight(),
            fence=self._epoch.next_fence(max((parked.fence for parked in mapped.parked.values()), default=0)),
            kinds=mapped.kinds,
            ids=mapped.ids,
            payloads=batch.payloads,
            attempts=mapped.attempts,
            extras=mapped.extras,
            wants_result=self.config.results,
        )
        self.push(flight, mapped.cells, counts, Place(part, batch, mapped))

    # Hold, and offer again.

    def _hold(self, part: Partition, kind: Kind, batch: StreamBatch, index: int, not_before: float = 0.0) -> None:
        """Keeps an item that is in memory by its position. Its payload stays only while half the window is enough for
        such payloads, or when the source cannot read it again."""
        position, payload = batch.positions[index], batch.payloads[index]
        part.hold(kind, (position,), not_before)
        keep = self._kept_items < self.window.items >> 1 and self._kept_bytes + len(payload) <= self.window.bytes >> 1
        if keep or not self.source.capabilities.rereads:
            part.kept[position] = Kept(batch.times[index], batch.keys[index], batch.headers[index], payload)
            self._kept_items += 1
            self._kept_bytes += len(payload)
        else:
            self.window.give(1, len(payload))

    async def _offer(self) -> None:
        """Offers held items when credit, a gate or their time allows it."""
        while True:
            self._offer_wake.clear()
            times = [part.held.next_time for part in self._partitions.values() if part.held.later]
            if not self._again:
                pause = min((time for time in times if time is not None), default=None)
                timeout = None if pause is None else max(0.0, pause - self.clock.monotonic())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(timeout):
                        await self._offer_wake.wait()
            self._offer_held()
            while self._again:
                again, self._again = self._again, []
                for part in {entry.part for entry in again}:
                    await self._read_again(part, [entry for entry in again if entry.part is part])

    def _offer_held(self) -> None:
        now, credit = self.clock.monotonic(), self.session.credit
        for part in self._partitions.values():
            part.held.ripen(now)
        if self.paused or self.draining or not self.session.connected:
            return
        for part in list(self._partitions.values()):
            for cell in part.held.cells():
                room = min(credit.room(cell), FLIGHT_ITEMS)
                taken = part.held.take(cell, room, credit.is_closed) if room and self._may_read_again() else []
                if not taken:
                    continue
                batch, missing = part.take_kept(taken)
                if batch.positions:
                    self._kept_items -= len(batch.positions)
                    self._kept_bytes -= sum(map(len, batch.payloads))
                    self._push_or_hold(part, batch)
                if missing:
                    credit.take(Counter({cell: len(missing)}))
                    self._again.append(Again(part, cell, missing, credit))
                    self._reading_again += len(missing)

    def _may_read_again(self) -> bool:
        """Whether there is memory for held items. Kept ones use at most half of it, so something always moves."""
        in_memory = self.window.used_items + self._reading_again
        return in_memory < self.window.items or not self.source.capabilities.rereads

    async def _read_again(self, part: Partition, again: list[Again]) -> None:
        """Held items whose payload was released, of all cells in the order of their positions: neighbours are read
        together. Their credit was reserved, so that nothing overtakes them for ever."""
        entries = {position: entry for entry in again for position in entry.positions}
        missing = sorted(entries)
        for begin in range(0, len(missing), FLIGHT_ITEMS):
            positions = missing[begin : begin + FLIGHT_ITEMS]
            batch = await self.connecting(partial(self.source.reread, part.name, positions), self._reopen)
            for entry, count in Counter(entries[position] for position in positions).items():
                entry.credit.give({entry.cell: count})
            self._reading_again -= len(positions)
            gone = set(positions).difference(batch.positions)
            if gone:
                part.settle(sorted(gone))
                self._commit_wake.set()
            if batch.positions:
                self.window.take(len(batch.positions), sum(map(len, batch.payloads)))
                self._push_or_hold(part, batch)

    # Settle.

    def succeeded(self, out: Out, indexes: list[int]) -> None:
        """Passed by the frontier; nothing is written."""
        part, batch, _ = out.place
        positions = batch.positions
        if len(indexes) != len(positions):
            positions = [positions[index] for index in indexes]
        part.settle(positions)
        self.window.give(len(indexes), out.release(indexes))
        self.counts.settled += len(indexes)

    def ended(self, out: Out, index: int, ended: Ended) -> None:
        """One item that did not plainly succeed."""
        part, batch, mapped = out.place
        position, kind = batch.positions[index], mapped.kinds[index]
        item = Departing(part, batch, mapped, index, out.pushed_at, out.flight.fence, ended)
        if ended.outcome == Outcome.SUCCESS and ended.result is not None:
            self._departures.store(item, ended.result)
            return
        former = mapped.parked.get(index)
        policy = self.policy(kind.function, former.tailer if former is not None else "")
        history = self._history(out, index)
        settlement = settle(ended, Family.STREAM, policy, history, random.random)
        match settlement.action:
            case Action.PARK:
                self._departures.park(item, settlement)
            case Action.DEAD:
                self._departures.bury(item, settlement)
            case Action.AGAIN | Action.HOLD | Action.RETURN:
                part.troubles[position] = history._replace(crashes=settlement.crashes, throttles=settlement.throttles)
                not_before = self.clock.monotonic() + settlement.delay if settlement.delay else 0.0
                self._hold(part, kind, batch, index, not_before)
            case Action.DONE:
                part.settle((position,))
                self.window.give(1, len(batch.payloads[index]))
                self.counts.settled += 1
        out.release((index,))

    def _history(self, out: Out, index: int) -> History:
        place: Place = out.place
        part, batch, mapped = place
        trouble = part.troubles.get(batch.positions[index])
        parked = mapped.parked.get(index)
        due = out.pushed_at if parked is None else parked.due
        late = max(0.0, self.clock.wall() - due)
        if trouble is not None:
            return trouble._replace(late=late)
        if parked is not None:
            return History(parked.attempt, parked.crashes, parked.throttles, late)
        return History(late=late)

    def _departed(self, tags: list[Tag]) -> None:
        """Items that are durably elsewhere: now, and only now, the frontier may pass them."""
        for part, position, size in tags:
            part.settle((position,))
            self.window.give(1, size)
        self.wake()

    # The checkpoint, and what the source's lease stands on.

    async def _checkpoint(self) -> None:
        while True:
            await self._commit_wake.wait()
            self._commit_wake.clear()
            began = self.clock.monotonic()
            await self._commit()
            await self._trim()
            await asyncio.sleep(max(0.0, COMMIT_EVERY - (self.clock.monotonic() - began)))

    async def _commit(self) -> None:
        marks = {name: mark for name, part in self._partitions.items() if (mark := part.mark()) is not None}
        if not marks:
            return
        await self._epoch.commit(marks)
        for name, mark in marks.items():
            self._partitions[name].committed(mark)
        self._read_wake.set()

    async def _trim(self) -> None:
        now = self.clock.monotonic()
        if isinstance(self.source, Trimmed) and now >= self._trimmed_at + TRIM_EVERY:
            self._trimmed_at = now
            for name, part in list(self._partitions.items()):
                with contextlib.suppress(NotConnected):
                    await self.source.settled_below(name, part.frontier.position)

    async def _heartbeat(self) -> None:
        """Renews what the tailer holds, and measures how far behind it is."""
        while True:
            await asyncio.sleep(self.sizes.heartbeat)
            await self._epoch.renew()
            with contextlib.suppress(TailraceError):
                ends = await self.source.ends()
                positions = {name: part.frontier.position for name, part in self._partitions.items()}
                self.lag = sum(max(0, end - positions.get(name, 0)) for name, end in ends.items())

    # What the session asks.

    def held_for(self, flight: int) -> float:
        """Seconds that the stream is still held."""
        return self._epoch.held_for()

    def renewal(self) -> Renewal:
        """Every flight that has items out."""
        return Renewal(self.held_for(0), list(self.flights))

    def credit_changed(self) -> None:
        """Limits, gates or functions are new; a function's own priority may give its items another cell."""
        priorities = {name: int(spec.priority) for name, spec in self.session.functions.items()}
        if priorities != self._priorities:
            self._priorities = priorities
            self._mapping.refresh()
            for part in self._partitions.values():
                part.held.rename(self._mapping.kind)
        self.wake()

    def session_lost(self, wait: float, unsent: Sequence[int]) -> None:
        """What was out is handed out again when nothing of it can be running any more."""
        now = self.clock.monotonic()
        self._epoch.quiet_after(now + wait)
        flights, self.flights = self.flights, {}
        for number, out in flights.items():
            part, batch, mapped = out.place
            not_before = 0.0 if number in unsent else now + wait
            for index in out.still_open():
                self._hold(part, mapped.kinds[index], batch, index, not_before)
        self.wake()

    # What people see.

    @property
    def starting(self) -> str:
        """Why nothing may be pushed yet."""
        return self._epoch.waiting_for

    @property
    def busy(self) -> bool:
        """Whether something is out, or on its way into a store."""
        return bool(self.flights or self._reading_again or len(self._departures))

    @property
    def held(self) -> int:
        """How many items are held by position."""
        return sum(len(part.held) for part in self._partitions.values()) + self._reading_again

    @property
    def clogged(self) -> str:
        """Why nothing more is read although there may be more."""
        failing = self._epoch.failing or self._departures.failing
        if failing:
            return failing
        if self._room().items:
            return ""
        if self._only_cell and (why := self._why_no_credit()):
            return why
        if self.held and not self.window.room(self._span()).items:
            return f"{self.held} items are held: {self._why_held()}"
        return ""

    def _why_no_credit(self) -> str:
        name = str(self.config.function)
        kind = self._mapping.kind(Kind(name, self._set_priority()))
        credit = self.session.credit
        if name not in self.session.functions:
            return f'no worker runs the function "{name}"'
        return credit.why_closed(kind)

    def _why_held(self) -> str:
        kinds: dict[str, int] = defaultdict(int)
        for part in self._partitions.values():
            for kind, count in part.held.counts().items():
                why = self.session.credit.why_closed(kind)
                known = kind.function in self.session.functions
                kinds[why or ("no credit or not due" if known else f'no worker runs "{kind.function}"')] += count
        return "; ".join(f"{why} ({count})" for why, count in sorted(kinds.items(), key=lambda one: -one[1])[:3])

    def _own_priority(self, function: str) -> int | None:
        return self._priorities.get(function)

    def _set_priority(self) -> int:
        priority = self.config.priority
        return int(Priority.parse(priority)) if isinstance(priority, str) else int(DEFAULT_PRIORITY)
