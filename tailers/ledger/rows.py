"""Rows of the ledger as one tailer sees them: read and written in batches, its own and others', and swept behind the
checkpoint (L15 to L20). `rules/ledger.py` decides each row's next state.

A tailer owns the rows of its own source. The tailer of the due streams writes rows of the sources that its items came
from: as a copy, whose only guard is that each write compares the row as it was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from ...model.ledger import LedgerEntry
from ...model.parked import Parked
from ...stores.ledger.ledger import Change, Ledger
from ..partition import Partition
from ..takeover.epoch import Epoch

#: Rows behind the checkpoint are removed at most this often, seconds.
SWEEP_EVERY = 0.25
#: Rows listed at once.
PAGE = 1000


class RowHome(msgspec.Struct, frozen=True):
    """The place of an item's row."""

    source: str
    partition: str
    position: int


class RowChange(msgspec.Struct, frozen=True):
    """A row as it was read (None: there was none) and as it shall be."""

    home: RowHome
    before: LedgerEntry | None
    after: LedgerEntry


def home_of(parked: Parked) -> RowHome | None:
    """The place of a copy's row; None when it has none."""
    return RowHome(parked.tailer, parked.partition, parked.position) if parked.n else None


def by_place(homes: Sequence[RowHome]) -> dict[tuple[str, str], list[int]]:
    """The indexes of rows by their source and partition: mostly all are of one."""
    places = [(home.source, home.partition) for home in homes]
    if places and places.count(places[0]) == len(places):
        return {places[0]: list(range(len(places)))}
    groups: dict[tuple[str, str], list[int]] = {}
    for index, place in enumerate(places):
        groups.setdefault(place, []).append(index)
    return groups


class Rows:
    """Reads, writes and sweeps rows for one tailer. `source` is the tailer's own name. `partitions` is the core's own,
    and grows; `moved` hears of every checkpoint that is durable."""

    def __init__(self, ledger: Ledger, epoch: Epoch, source: str, partitions: Mapping[str, Partition]) -> None:
        self._ledger = ledger
        self._epoch = epoch
        self._source = source
        self._partitions = partitions
        self._wake = asyncio.Event()

    async def open(self, part: Partition) -> None:
        """Writes the epoch, then reads (L11): rows of items that may still be run from here. Tells the ledger how far
        the checkpoint is, since the former owner may have died between the two."""
        entries = await self._epoch.guarded(lambda: self._ledger.open(self._source, part.name, self._epoch.number))
        part.know(entries)
        if part.checkpoint:
            await self._passed(part.name, part.checkpoint)

    async def read(self, homes: Iterable[RowHome]) -> dict[RowHome, LedgerEntry]:
        """Reads rows; returns the ones that exist."""
        homes = list(homes)
        found: dict[RowHome, LedgerEntry] = {}
        for (source, partition), indexes in by_place(homes).items():
            positions = [homes[index].position for index in indexes]
            rows = await self._epoch.guarded(partial(self._ledger.get, source, partition, positions))
            found.update({RowHome(source, partition, position): row for position, row in rows.items()})
        return found

    async def below(self, partition: str, end: int) -> AsyncIterator[list[LedgerEntry]]:
        """Yields the rows of a partition of this tailer's own below a position, some at a time. There may be many: one
        for every parked item."""
        after = (partition, -1)
        while True:
            page = await self._epoch.guarded(partial(self._ledger.list, self._source, PAGE, after))
            own = [row.entry for row in page if row.partition == partition and row.entry.position < end]
            if not own:
                return
            yield own
            after = (partition, own[-1].position)

    async def write(self, changes: Sequence[RowChange]) -> list[LedgerEntry | None]:
        """Writes rows and returns them as they stand then, see `Ledger.write`. Rows of other tailers are written as a
        copy's. Raises StaleFence when another owner took the source."""
        pairs: list[Change] = [(change.before, change.after) for change in changes]
        found: list[LedgerEntry | None] = [None] * len(changes)
        for place, indexes in by_place([change.home for change in changes]).items():
            rows = await self._write(*place, [pairs[index] for index in indexes])
            for index, row in zip(indexes, rows, strict=True):
                found[index] = row
        return found

    async def _write(self, source: str, partition: str, batch: list[Change]) -> list[LedgerEntry | None]:
        own = source == self._source
        epoch = self._epoch.number if own else None
        rows = await self._epoch.guarded(lambda: self._ledger.write(source, partition, batch, epoch))
        if own:
            self._partitions[partition].know([row for row in rows if row is not None])
        return rows

    def moved(self) -> None:
        """Notes that a checkpoint is durable, which may have passed rows."""
        if any(part.rowed for part in self._partitions.values()):
            self._wake.set()

    async def run(self) -> None:
        """Removes rows of items that are over and passed, as the checkpoint moves (L20)."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.sweep()
            await asyncio.sleep(SWEEP_EVERY)

    async def sweep(self) -> None:
        """Tells the ledger of each checkpoint that passed a row; the row of an item that still runs goes when that
        ends."""
        for part in [*self._partitions.values()]:
            position = part.checkpoint
            if any(rowed < position for rowed in part.rowed):
                await self._passed(part.name, position)
                part.swept(position)

    async def _passed(self, partition: str, position: int) -> None:
        await self._epoch.guarded(lambda: self._ledger.passed(self._source, partition, self._epoch.number, position))
