"""What a stream pump does with items that may not run now: holds them by position, offers them again when credit, a
gate or their time allows it, and reads again those whose payload it let go of.

Which items are held, and in which order they leave, is rules/held.py's; this is the memory and the loop around it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..sdk.clock import Clock
from ..sdk.model.demand import Cell
from ..sdk.model.workload import FLIGHT_ITEMS, Kind
from ..sdk.source import StreamBatch, StreamSource
from .mapping import Mapped
from .partition import Kept, Partition
from .rules.credit import Credit
from .session import SchedulerSession


class Owner(Protocol):
    """The pump behind what is held.

    active        whether items may be offered now, as far as there is credit
    push_or_hold  items that are in memory: pushes what has credit, holds the rest
    reread        the items of these positions that the source still has
    gone          these positions are not in the batch in which they should be again; they are over
    """

    @property
    def active(self) -> bool: ...

    def push_or_hold(self, part: Partition, batch: StreamBatch) -> None: ...

    async def reread(self, part: Partition, positions: list[int]) -> StreamBatch: ...

    async def gone(self, part: Partition, positions: list[int], batch: StreamBatch) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Again:
    """Held items of one cell that are to be read again; their credit is reserved, with the session of that time."""

    part: Partition
    cell: Cell
    positions: list[int]
    credit: Credit


class Holding:
    """Everything that one tailer holds. `partitions` is the pump's own, and grows; `wake` is set whenever anything
    changed.

    Invariants: the kept payloads are counted in their windows and take at most half of one, unless the source cannot
    read again; `reading_again` counts the items taken from what is held and not yet read again.
    """

    def __init__(
        self,
        owner: Owner,
        source: StreamSource,
        partitions: Mapping[str, Partition],
        session: SchedulerSession,
        clock: Clock,
        wake: asyncio.Event,
    ) -> None:
        self.reading_again = 0
        self._owner = owner
        self._source = source
        self._partitions = partitions
        self._session = session
        self._clock = clock
        self._wake = wake
        self._again: list[Again] = []
        self._reading: defaultdict[str, set[int]] = defaultdict(set)  # by partition, until they are here
        self._kept_items = 0
        self._kept_bytes = 0

    def __len__(self) -> int:
        return sum(part.waiting for part in self._partitions.values()) + self.reading_again

    def hold(
        self,
        part: Partition,
        kind: Kind,
        batch: StreamBatch,
        index: int,
        not_before: float = 0.0,
        *,
        lost: bool = False,
    ) -> None:
        """Keeps an item that is in memory by its position, until its cell opens and not before that time. It was out
        when it is `lost`."""
        position = batch.positions[index]
        if lost:
            part.lost(position)
        part.hold(kind, position, not_before)
        if not_before:
            self.look()  # its time may be the next one, and nothing else may happen before it
        if not_before or self._session.credit.is_closed(kind):
            part.stuck((position,))
        self.keep(part, batch, index)

    def keep(self, part: Partition, batch: StreamBatch, index: int) -> None:
        """An item in memory is known by its position from now on. Its payload stays only while half the window is
        enough for such payloads, or when the source cannot read it again."""
        position, payload = batch.positions[index], batch.payloads[index]
        window = part.window
        keep = self._kept_items < window.items >> 1 and self._kept_bytes + len(payload) <= window.bytes >> 1
        if keep or not self._source.capabilities.rereads:
            part.kept[position] = Kept(batch.times[index], batch.keys[index], batch.headers[index], payload)
            self._kept_items += 1
            self._kept_bytes += len(payload)
        else:
            window.give(1, len(payload))

    def with_credit(self, part: Partition, batch: StreamBatch, mapped: Mapped, idle: bool) -> list[int]:
        """The indexes of items that may be pushed now, within their cells' credit; the others are held. `idle`: all."""
        now, wall, credit = self._clock.monotonic(), self._clock.wall(), self._session.credit
        going: list[int] = []
        rooms: dict[Cell, int] = {}
        total = 0 if idle else credit.total - credit.out
        for index, cell in enumerate(mapped.cells):
            due = mapped.due.get(index, 0.0)
            if due > wall:
                self.hold(part, mapped.kinds[index], batch, index, now + due - wall)
                continue
            room = rooms[cell] if cell in rooms else credit.room(cell)
            if room > 0 and total > 0 and not credit.is_closed(mapped.kinds[index]):
                going.append(index)
                rooms[cell] = room - 1
                total -= 1
            else:
                self.hold(part, mapped.kinds[index], batch, index)
        return going

    async def run(self) -> None:
        """Offers held items when credit, a gate or their time allows it."""
        while True:
            self._wake.clear()
            times = [part.held.next_time for part in self._partitions.values() if part.held.later]
            if not self._again:
                pause = min((time for time in times if time is not None), default=None)
                timeout = None if pause is None else max(0.0, pause - self._clock.monotonic())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(timeout):
                        await self._wake.wait()
            self._offer()
            while self._again:
                again, self._again = self._again, []
                for entry in again:
                    self._reading[entry.part.name].update(entry.positions)
                for part in {entry.part for entry in again}:
                    await self._read_again(part, [entry for entry in again if entry.part is part])

    def look(self) -> None:
        """Something may be offered that could not be before."""
        self._wake.set()

    def functions(self) -> set[str]:
        """The functions of what is held."""
        return {kind.function for part in self._partitions.values() for kind in part.held.counts()}

    def positions(self, part: Partition) -> list[int]:
        """Where the items of a partition are that are held, wait behind others, or are being read again."""
        again = [position for entry in self._again if entry.part is part for position in entry.positions]
        return [*part.held_positions(), *again, *self._reading[part.name]]

    def why(self) -> str:
        """The three commonest reasons why items are held, each with their number."""
        kinds: dict[str, int] = defaultdict(int)
        for part in self._partitions.values():
            for kind, count in part.held.counts().items():
                why = self._session.credit.why_closed(kind)
                served = self._session.credit.granted(kind.function)
                kinds[why or ("no credit or not due" if served else f'no worker runs "{kind.function}"')] += count
            if part.order is not None and part.order.waiting:
                kinds[part.why_waiting()] += part.order.waiting
        return "; ".join(f"{why} ({count})" for why, count in sorted(kinds.items(), key=lambda one: -one[1])[:3])

    def _offer(self) -> None:
        now, credit = self._clock.monotonic(), self._session.credit
        for part in self._partitions.values():
            part.held.ripen(now)
        if not self._owner.active:
            return
        for part in list(self._partitions.values()):
            for cell in part.held.cells():
                room = min(credit.room(cell), FLIGHT_ITEMS)
                taken = part.held.take(cell, room, credit.is_closed) if room and self._may_read_again(part) else []
                if not taken:
                    continue
                batch, missing = part.take_kept(taken)
                if batch.positions:
                    self._kept_items -= len(batch.positions)
                    self._kept_bytes -= sum(map(len, batch.payloads))
                    self._owner.push_or_hold(part, batch)
                if missing:
                    credit.take(Counter({cell: len(missing)}))
                    self._again.append(Again(part, cell, missing, credit))
                    self.reading_again += len(missing)

    def _may_read_again(self, part: Partition) -> bool:
        """Whether there is memory for held items. Kept ones use at most half of it, so something always moves."""
        in_memory = part.window.used_items + self.reading_again
        return in_memory < part.window.items or not self._source.capabilities.rereads

    async def _read_again(self, part: Partition, again: list[Again]) -> None:
        """Held items whose payload was released, of all cells in the order of their positions: neighbours are read
        together. Their credit was reserved, so that nothing overtakes them for ever."""
        entries = {position: entry for entry in again for position in entry.positions}
        missing = sorted(entries)
        for begin in range(0, len(missing), FLIGHT_ITEMS):
            positions = missing[begin : begin + FLIGHT_ITEMS]
            batch = await self._owner.reread(part, positions)
            gone = set(positions).difference(batch.positions)
            if gone:
                await self._owner.gone(part, sorted(gone), batch)
            for entry, count in Counter(entries[position] for position in positions).items():
                entry.credit.give({entry.cell: count})
            self.reading_again -= len(positions)
            self._reading[part.name].difference_update(positions)
            if batch.positions:
                part.window.take(len(batch.positions), sum(map(len, batch.payloads)))
                self._owner.push_or_hold(part, batch)
