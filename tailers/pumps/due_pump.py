"""The pump of due streams: its items are copies, which start only by compare-and-set of their row (L16 to L19).

Between credit and push stands the ledger: the rows of copies are read, those that may start are written under the
flight's fence, and the copies that won are pushed (copy_starts.py). Copies that have no row start at once.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from ...model.demand import Closed
from ...model.errors import StaleFence
from ...model.linger import Linger
from ...model.workload import FLIGHT_ITEMS
from ..copy_starts import CopyStarts
from ..counts import TailerCounts
from ..resources import Setup
from ..sources.due import DueSource
from ..stream_policy import StreamPolicy
from .copy_starter import CopyStarter
from .pump import Pump
from .stream_pump import StreamPump

#: From one checkpoint to the next. Copies have their rows from the start, by which a restart skips those that it reads
#: again, so checkpoints may wait for each other, and longer after one of many functions: 10 s for 200 of them.
COMMIT_EVERY = Linger(1.0)
POLICY = StreamPolicy(copies=True, redrives=False, detaches=False, commit_every=COMMIT_EVERY, commit_of_each=0.05)
#: Batches of copies that start together.
START_TOGETHER = 256
#: Items of many functions are pushed together from so many items on, or so many bytes: a flight holds twice as many.
TOGETHER_ITEMS = FLIGHT_ITEMS >> 1
TOGETHER_BYTES = 1 << 20


class DuePump(StreamPump):
    """The pump of all due streams: a partition for each function, with a window of its own."""

    def __init__(self, setup: Setup, counts: TailerCounts, source: DueSource) -> None:
        super().__init__(setup, counts, source, POLICY)
        assert self._core.copies is not None
        self._copies: CopyStarts = self._core.copies
        self._due = source
        source.on_ready = self._read_wake.set
        self._starter = CopyStarter(self.config.name, self._rows, self._epoch, setup.row_cache, setup.clock)

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        return [self._read_each(), *self.loops(), self._start()]

    @property
    def clogged(self) -> str:
        """The reason why a store refuses; one function's full window keeps no other from being read."""
        return self.store_failing

    @property
    def functions(self) -> set[str]:
        return set(self._partitions)

    @property
    def outages(self) -> list[Closed]:
        return [closed for name, closed in self.session.credit.clogs.items() if name in self._partitions]

    def may_seek(self) -> None:
        Pump.may_seek(self)

    async def expect(self, *functions: str) -> None:
        """Expects due items of these functions from now on."""
        await self._due.expect(*functions)

    async def _read_each(self) -> None:
        """Reads each function that has something due."""
        copies = self._copies
        while True:
            self._read_wake.clear()
            some, left = False, self._core.reading.most if self._see().seen.active else 0
            for name in self._due.ready() if left else ():
                part = self._partitions.get(name) or await self._add(name)
                room = self._core.reading.room_of(part)
                if not room.items:
                    continue
                most = min(left - copies.found, room.items), min(TOGETHER_BYTES, room.bytes)
                batch = self._due.at_hand(name, *most)
                if batch is None:
                    batch = await self.connecting(partial(self._due.take, name, *most), self._reopen)
                if batch is not None and batch.positions:
                    self._took(part, batch)
                    some = True
                if copies.found >= min(left, TOGETHER_ITEMS) or copies.found_bytes >= TOGETHER_BYTES:
                    self._push_together()
                    left = self._core.reading.most
                if not left:
                    break
            self._push_together()
            if not some:
                await self._read_wake.wait()

    def _push_together(self) -> None:
        if self._copies.found:
            self._see().push_together()
            self._carry_out()

    async def _start(self) -> None:
        """Settles adopted copies that have ended, and starts copies that are to start, by their rows."""
        copies = self._copies
        while True:
            await self._start_wake.wait()
            self._start_wake.clear()
            while copies.ends:
                home = copies.home
                row = None if home is None else (await self._rows.read([home])).get(home)
                self._see().adopted_row(home, row)
                self.wake()
            while copies.starting:
                together = copies.starting[:START_TOGETHER]
                try:
                    steps = await self._starter.ask(together, may_be_adopted=self._may_be_adopted)
                except StaleFence:
                    self.counts.refused()
                    raise
                self._see().started(steps)
                self.wake()

    @property
    def _may_be_adopted(self) -> bool:
        """Whether a row that a former owner left running may be of an item that was adopted, and still runs."""
        adopted = self._core.inherited.pending or self._copies.ends or not self._epoch.quiet()
        return self._epoch.adopted and bool(adopted)
