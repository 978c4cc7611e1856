"""Items that a former owner of a stream had detached (detaching.py): their rows, their guards, and perhaps their runs.

What still runs and was adopted is this owner's: its record is read again, so that it can be settled like any other, and
when the source has it no more, its guard stands in for it. What runs elsewhere is released when that is over. All other
rows are released at once: their items run again as copies, appended from the source where it has their records still,
else when their guards are looked at.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from ...foundation.clock import Clock
from ...model.ledger import LedgerEntry
from ...model.workload import FLIGHT_ITEMS
from ...sdk.source import StreamBatch
from ..departures.departure import ended_item
from ..departures.departures import NOT_RUN
from ..items import chosen
from ..ledger.rows import RowChange, RowHome, Rows
from ..partition import Partition
from ..rules.ledger import released
from ..stream_core import StreamCore

#: Rows in one write.
AT_ONCE = 1024


class Below(NamedTuple):
    """A partition whose rows below `end` are to be looked at, but for those that are `known`."""

    part: Partition
    end: int
    known: frozenset[int]


class LeftRunning:
    """The items left to one stream tailer, for as long as one opening of its source lasts. `reread` reads
    records again; None: its source cannot."""

    def __init__(
        self,
        core: StreamCore,
        name: str,
        rows: Rows,
        clock: Clock,
        reread: Callable[[Partition, list[int]], Awaitable[StreamBatch]] | None,
    ) -> None:
        self._core = core
        self._name = name
        self._rows = rows
        self._departures = core.departures
        self._inherited = core.inherited
        self._detaching = core.detaching
        self._clock = clock
        self._reread = reread
        self._adopted: dict[Partition, dict[int, LedgerEntry]] = {}
        self._below: list[Below] = []
        self._again: dict[Partition, list[LedgerEntry]] = {}

    async def found(self, part: Partition) -> None:
        """A partition was taken, and nothing of it was read: what is known of its rows, and of what was adopted."""
        rows = {position: row for position, row in part.rows.items() if row.is_detached}
        spots = self._inherited.positions_of(part.name)
        others = [RowHome(self._name, part.name, position) for position in spots if position not in part.rows]
        rows |= {home.position: row for home, row in (await self._rows.read(others)).items() if row.is_detached}
        if part.frontier.position:
            self._below.append(Below(part, part.frontier.position, frozenset(rows)))
        over: list[LedgerEntry] = []
        again: set[int] = set()
        for position, row in sorted(rows.items()):
            settled = not part.frontier.unread(position, position)
            until = self._inherited.elsewhere((part.name, position))
            if until is not None:
                self._detaching.over_at(until, part, row)
            elif position not in spots:
                over.append(row)
                again.update((position,) if settled else ())
            elif settled:
                self._adopted.setdefault(part, {})[position] = row
        standing = await self._release(part, over)
        self._again[part] = [row for row in standing if row.position in again]

    async def opened(self) -> None:
        """The source can be read: what was adopted and had been passed gets its record, before anything else is."""
        adopted, self._adopted = self._adopted, {}
        for part, rows in adopted.items():
            positions = sorted(rows)
            for begin in range(0, len(positions), FLIGHT_ITEMS):
                some = positions[begin : begin + FLIGHT_ITEMS]
                there = await self._records(part, some)
                gone = sorted(set(some).difference(there.positions))
                self._detaching.bare.update((part.name, position) for position in gone)
                for batch in (there, _without_payload(part, gone)):
                    items = self._core.items(part, batch)
                    part.detached |= {position: rows[position] for position in batch.positions}
                    part.window.take(len(items), items.size)
                    self._inherited.took(items)

    async def run(self, decided: Callable[[], None]) -> None:
        """Looks for rows of what was passed, and does not run; `decided` is called when some of it is to be written."""
        for part, rows in self._again.items():
            await self._append(part, rows)
            decided()
        for part, end, known in self._below:
            async for rows in self._rows.below(part.name, end):
                loose = [row for row in rows if row.is_detached and row.position not in known]
                await self._append(part, await self._release(part, loose))
                decided()
        self._again.clear()
        self._below.clear()

    async def _release(self, part: Partition, rows: Sequence[LedgerEntry]) -> list[LedgerEntry]:
        """Rows of what does not run; those that could be released, as they are now."""
        standing: list[LedgerEntry] = []
        for begin in range(0, len(rows), AT_ONCE):
            now = self._clock.wall()
            changes = [
                RowChange(RowHome(self._name, part.name, row.position), row, released(row, now))
                for row in rows[begin : begin + AT_ONCE]
            ]
            answers = await self._rows.write(changes)
            standing += [row for row, change in zip(answers, changes, strict=True) if row and row == change.after]
        return standing

    async def _records(self, part: Partition, positions: list[int]) -> StreamBatch:
        """Those that the source has still, as they were."""
        if self._reread is None:
            return _without_payload(part, [])
        batch = await self._reread(part, positions)
        return chosen(batch, [index for index in range(len(batch.positions)) if index not in batch.refused])

    async def _append(self, part: Partition, rows: Iterable[LedgerEntry]) -> None:
        """What the source still has of them runs at once."""
        by_position = {row.position: row for row in rows}
        positions = sorted(by_position)
        for begin in range(0, len(positions), FLIGHT_ITEMS):
            items = self._core.items(part, await self._records(part, positions[begin : begin + FLIGHT_ITEMS]))
            part.window.take(len(items), items.size)
            for index, position in enumerate(items.batch.positions):
                row = part.detached[position] = by_position[position]
                self._departures.append_again(ended_item(items, index, row.first_seen, 0, NOT_RUN), row)


def _without_payload(part: Partition, positions: list[int]) -> StreamBatch:
    """Records of which only the positions are known."""
    count = len(positions)
    return StreamBatch(part.name, positions, [0.0] * count, [""] * count, [()] * count, [b""] * count)
