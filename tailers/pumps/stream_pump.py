"""The shell of a stream tailer's core: reads, offers held items, writes departures, and moves the checkpoint.

Here are the awaits; `stream_core.py` decides. The checkpoint follows the settled positions and nothing else: it never
waits for an item that failed, and never passes one that is neither done nor parked (law 3).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, cast

from ...model.audit import Audit
from ...model.demand import Cell
from ...model.errors import TailraceError
from ...model.workload import Ended, Outcomes
from ...sdk.source import Counted, PartitionSource, StreamBatch, StreamSource
from ...stores.checkpoints.checkpoints import Mark
from ..checkpoint import Checkpoint
from ..counts import TailerCounts
from ..departures.departure import Departure
from ..departures.destinations import Destinations
from ..departures.detaching import PartitionPosition
from ..departures.durable import look_for_room
from ..hand_out import HandOut
from ..items import Items
from ..ledger.rows import Rows
from ..ledger.suspicion import mark_suspects
from ..losses import Losses
from ..partition import Partition
from ..redrives import Redrives
from ..resources import Setup
from ..session import Renewal
from ..stream_core import StreamCore
from ..stream_policy import StreamPolicy
from ..takeover.epoch import Epoch
from ..takeover.inherited import InheritedItem
from ..takeover.orphan_shell import OrphanShell
from ..takeover.succession import Succession
from .pump import Pump

#: A read waits this long for the first item; it ends at once when one comes.
READ_WAIT = 5.0
#: Seconds for the last checkpoint and for leaving the row.
CLOSE_WITHIN = 5.0


class StreamPump(Pump):
    """The pump of one stream."""

    def __init__(
        self, setup: Setup, counts: TailerCounts, source: StreamSource, policy: StreamPolicy | None = None
    ) -> None:
        super().__init__(setup, counts)
        policy = policy or StreamPolicy()
        self.source = source
        name, stores, clock, window = setup.config.name, setup.environment, setup.clock, self.window
        self._core = core = StreamCore(
            setup,
            counts,
            source.capabilities,
            window,
            flights=self.flights,
            settlement=self.settlement,
            adopted=self._adopted_ended,
            lost=self._adopted_lost,
            policy=policy,
        )
        self._partitions = core.partitions
        self._epoch = Epoch(
            stores.ownership,
            stores.checkpoints,
            name,
            setup.sizes,
            clock,
            counts.refused,
            setup.row,
            lambda: setup.elsewhere.get(name, ""),
        )
        self._rows = Rows(stores.ledger, self._epoch, name, core.partitions)
        self._destinations = Destinations(setup, self._rows, self._arrived)
        self._losses = Losses(setup.config, stores.drops, clock, counts)
        self._marks: dict[str, Mark] = {}
        self._start_wake = asyncio.Event()
        self._read_wake, self._held_wake = self.new_wake(), self.new_wake()
        self._tick_wake, self._letters_wait = asyncio.Event(), asyncio.Event()
        reread = self.reread if source.capabilities.rereads else None
        self._orphan_shell = OrphanShell(self._rows, self._see, self._carry_out, reread)
        self._redrives: Redrives | None = None
        if policy.redrives:
            every = setup.sizes.heartbeat
            self._redrives = Redrives(name, stores.dead_letters, self._epoch, every, self._see, self._carry_out)
        self._succession = Succession(name, self._epoch, self.session, core.inherited, setup.sizes, clock, self.wake)
        self._commit_wake = self.new_wake()
        self._checkpoint = Checkpoint(
            source,
            self._epoch,
            core.partitions,
            clock,
            wake=self._commit_wake,
            moved=self._moved,
            every=policy.commit_every,
            of_each=policy.commit_of_each,
        )

    # Events and decisions.

    def _see(self) -> StreamCore:
        """The core, after it was told how the world is now."""
        seen, session = self._core.seen, self.session
        seen.monotonic, seen.wall = self.clock.monotonic(), self.clock.wall()
        seen.credit = session.credit
        seen.may_push = self._succession.may_push
        seen.idle = self.paused or self.draining or not seen.may_push
        seen.active = session.connected and not seen.idle
        return self._core

    def wake(self) -> None:
        """Carries out the decisions of the core, and has every loop look again."""
        self._core.decided.wake = True
        self._carry_out()

    def _carry_out(self) -> None:
        decided = self._core.decided
        if decided.commit:
            decided.commit = False
            self._commit_wake.set()
        pushes, decided.pushes = decided.pushes, []
        for items, counts, fence in pushes:
            self._push(items, counts, fence or self._epoch.next_fence())
        if decided.start:
            decided.start = False
            self._start_wake.set()
        departures, decided.departures = decided.departures, []
        for departing, due_in in departures:
            self._destinations.add(departing, due_in)
        if decided.look:
            decided.look = False
            self._held_wake.set()
        if decided.tick:
            decided.tick = False
            self._tick_wake.set()
        if self._core.letter_waits:
            self._letters_wait.set()
        if decided.wake:
            decided.wake = False
            super().wake()

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
        await self._orphan_shell.opened()
        if self._redrives is not None:
            await self._redrives.opened()
        self._carry_out()

    async def _add(self, name: str) -> Partition:
        """Adds a partition that came into being, or that the checkpoint knows."""
        part = self._core.partition(name, self._marks.get(name, Mark(0)))
        if self._core.copies is not None:  # their rows are their sources', and are read when they start
            self._core.given(part)
            return part
        await self._rows.open(part)
        self._core.given(part)
        if self._epoch.left_behind:
            await mark_suspects(self._rows, self.config.name, part, self._epoch.number)
        await self._orphan_shell.found(part)
        self._carry_out()
        return part

    async def _open_source(self) -> None:
        ends = {name: part.frontier.end for name, part in self._partitions.items()}
        await self._checkpoint.opening(self.source.open(ends))

    async def _reopen(self) -> None:
        await self.source.close()
        await self._open_source()

    async def close(self) -> None:
        """Leaves the row empty when nothing can be running any more, so that the next owner need not wait."""
        self.counts.ageing.clear()
        await self._succession.close()
        await self.source.close()
        with contextlib.suppress(TailraceError, TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN):
                await self._checkpoint.finish()
                await self._rows.sweep()
                await self._succession.leave(self.flights)

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        return [self._read(), *self.loops()]

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """The loops beside the one that reads."""
        letters = look_for_room(
            self.setup.environment.dead_letters, self._core.letter_waits, self._letters_wait, self._room_for_letters
        )
        loops = [self._offer(), self._tick(), self._measure(), self._checkpoint.run(), self._rows.run(), letters]
        loops += [] if self._redrives is None else [self._redrives.run()]
        return [*loops, *self._succession.steps(), *self._destinations.steps(), self._orphan_shell.run()]

    # Read.

    async def _read(self) -> None:
        while True:
            self._read_wake.clear()
            room = self._see().room
            if not room.items:
                self._core.cannot_read()
                self._carry_out()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._core.ordering.patience):
                        await self._read_wake.wait()
                continue
            read = partial(self.source.read, room.items, room.bytes, READ_WAIT)
            for batch in await self.connecting(read, self._reopen):
                part = self._partitions.get(batch.partition) or await self._add(batch.partition)
                if batch.absent or batch.lost:
                    await self._losses.read(part, batch)
                self._took(part, batch)

    def _took(self, part: Partition, batch: StreamBatch) -> None:
        """Takes items read for the first time in this epoch."""
        self._see().read(part, batch)
        self._carry_out()

    async def _measure(self) -> None:
        """Measures, for ever, how far the tailer is behind the source's end."""
        while True:
            await asyncio.sleep(self.sizes.heartbeat)
            with contextlib.suppress(TailraceError):
                self.lag = await self._behind()
            self._carry_out()

    async def _behind(self) -> int:
        """Number of positions between the frontiers and the ends of the source; of items, where the source counts
        them."""
        positions = {name: part.frontier.position for name, part in self._partitions.items()}
        if isinstance(self.source, Counted):
            return await self.source.behind(positions)
        ends = await self.source.ends()
        self._core.inherited.ends_at(ends)
        return sum(max(0, end - positions.get(name, 0)) for name, end in ends.items())

    # Push.

    async def _offer(self) -> None:
        """Offers held items when credit, a gate or their time allows it, and reads again those that are not in
        memory."""
        while True:
            self._held_wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._see().holding.wait()):
                    await self._held_wake.wait()
            self._see().offer()
            self._carry_out()
            while again := self._core.holding.to_reread():
                for part, positions in again:
                    batch = await self.reread(part, positions)
                    if gone := sorted(set(positions).difference(batch.positions)):
                        await self._losses.gone(part, gone, batch)  # when that is noted, the frontier passes them
                        self.wake()
                    self._see().reread(part, positions, batch)
                    self._carry_out()

    async def reread(self, part: Partition, positions: list[int]) -> StreamBatch:
        """Reads items again that were read before; returns those that the source still has."""
        return await self.connecting(partial(self.source.reread, part.name, positions), self._reopen)

    def _push(self, items: Items, counts: Counter[Cell], fence: int) -> None:
        """Hands items out together, under a new fence."""
        flight = items.flight(self.next_flight(), fence, self._succession.owned(items), self.config.results)
        self.push(flight, items.mapped.cells, counts, items, taken=True)

    # Settle.

    def outcomes_came(self, outcomes: Outcomes) -> None:
        """Settles outcomes, those of adopted items too."""
        self._see()
        self._succession.came(outcomes)
        super().outcomes_came(outcomes)

    def succeeded(self, out: HandOut, indexes: list[int]) -> None:
        """Lets the frontier pass items that succeeded."""
        self._core.succeeded(out, indexes)

    def ended(self, out: HandOut, ends: Mapping[int, Ended]) -> None:
        """Settles items that did not plainly succeed."""
        self._core.ended(out, ends)

    def _adopted_ended(self, record: InheritedItem, ended: Ended) -> None:
        self._see().adopted_ended(record, ended)

    def _adopted_lost(self, record: InheritedItem, not_before: float) -> None:
        self._see().adopted_lost(record, not_before)

    def _arrived(self, batch: list[Departure]) -> None:
        """Lets departures go on that are durable where they were to go."""
        self._see().departures.arrived(batch)
        self.wake()

    async def _tick(self) -> None:
        """Looks now and then at items that are out, and at once at items that have waited their time."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._see().detaching.wait()):
                    await self._tick_wake.wait()
            self._tick_wake.clear()
            self._see().tick()
            self._carry_out()

    async def _room_for_letters(self, items: Sequence[PartitionPosition]) -> None:
        self._see().room_for_letters(items)
        self._carry_out()

    def _moved(self) -> None:
        self._read_wake.set()
        self._rows.moved()

    # For the session.

    @property
    def in_flight(self) -> int:
        """Number of items that were pushed, or were adopted and read, and have no outcome."""
        return super().in_flight + len(self._core.inherited)

    def held_for(self, flight: int) -> float:
        return self._epoch.held_for()

    def renewal(self) -> Renewal:
        """The flights that have items out."""
        return Renewal(self.held_for(0), [*self.flights, *self._succession.flights])

    def session_opened(self) -> None:
        """Has the row name the scheduler: nothing is pushed to one before."""
        self._succession.opened()

    def credit_changed(self) -> None:
        """Tells the core that limits, gates or functions are new; a function's own priority may give its items another
        cell."""
        self._see().functions_changed(self.session.functions)
        self.wake()

    def session_lost(self, wait: float, unsent: Sequence[int]) -> None:
        """Keeps the items that were out until nothing of them can be running any more; then they are handed out
        again."""
        core = self._see()
        self._succession.lost(core.seen.monotonic, wait)
        core.session_lost(wait, unsent)
        self.wake()

    # For people.

    def may_seek(self) -> None:
        """Does nothing: a stream's pump has a checkpoint that may be moved."""

    def audits(self, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        return self._see().audits(self._core.leaving(iter(self._destinations)), partition, span)

    @property
    def unaccounted(self) -> int:
        return self._core.position_audit.unaccounted(self.in_flight, self._core.going)

    @property
    def classes(self) -> dict[str, int]:
        return self._core.position_audit.classes(self.in_flight, self._core.going)

    @property
    def starting(self) -> str:
        return self._epoch.waiting_for

    @property
    def standing_by(self) -> bool:
        return self._epoch.standing_by

    @property
    def busy(self) -> bool:
        running = self.flights or self._core.inherited.running
        going = self._core.going - self._destinations.waiting
        return bool(running or self._core.holding.reading_again or going)

    @property
    def held(self) -> int:
        return len(self._core.holding)

    @property
    def clogged(self) -> str:
        if self.store_failing:
            return self.store_failing
        if self._see().room.items:
            return ""
        if why := self._core.target.why_no_credit(self.session.credit, self.session.functions):
            return why
        if self.held and not self.window.room(self._core.reading.span()).items:
            return f"{self.held} items are held: {self.held_because}"
        return ""

    @property
    def store_failing(self) -> str:
        return self._epoch.failing or self._destinations.failing or self._losses.failing

    @property
    def held_because(self) -> str:
        core = self._see()
        if waiting := core.letter_waits.waiting(core.seen.monotonic):
            return "; ".join(filter(None, (f"{core.letter_waits.why} ({waiting})", core.holding.why())))
        return core.holding.why()

    @property
    def functions(self) -> set[str]:
        return super().functions or self._core.holding.functions()
