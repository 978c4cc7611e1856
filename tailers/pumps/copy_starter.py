"""Start of due copies by compare-and-set of their ledger rows, in batches: the reads and writes (L16 to L19).

Rows that this process wrote a moment ago are known (row_cache.py), the others are read; the rows of copies that may
start are written under one new fence. The result for each batch is a step that copy_starts.py takes; rules/ledger.py
decides it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...foundation.clock import Clock
from ...model.errors import StaleFence
from ...model.ledger import LedgerEntry
from ..copy_starts import Starting, StartStep
from ..ledger.row_cache import RowCache
from ..ledger.rows import RowChange, RowHome, Rows, by_place, home_of
from ..rules.ledger import Due, is_suspect, may_start_unread, starts
from ..takeover.epoch import Epoch


class Copy(msgspec.Struct, frozen=True):
    """A copy that has a row: the number of its batch, its index there, the home of its row, and its request to
    start."""

    batch: int
    index: int
    home: RowHome
    due: Due


class CopyStarter:
    """Starts copies for the tailer of the due streams. `source` is its name."""

    def __init__(self, source: str, rows: Rows, epoch: Epoch, row_cache: RowCache, clock: Clock) -> None:
        self._source = source
        self._rows = rows
        self._epoch = epoch
        self._row_cache = row_cache
        self._clock = clock

    async def ask(self, together: Sequence[Starting], *, may_be_adopted: bool) -> list[StartStep]:
        """Writes the rows of copies that may run, under a new fence: one read and one write for each source that they
        came from, however many functions they are of. `may_be_adopted`: items that a former owner left running may
        still run. Raises StaleFence when a newer owner runs some of them."""
        copies, without = _copies(together)
        homes = [copy.home for copy in copies]
        rows = await self._known(copies, homes)
        fences = [item.fence for each in together for item in each.items.mapped.parked.values()]
        fence = self._epoch.next_fence(max([*fences, *[row.fence for row in rows.values()]], default=0))
        steps = [StartStep(fence, going) for going in without]
        writing: list[tuple[StartStep, int, RowChange]] = []
        for (source, partition), indexes in by_place(homes).items():
            group = [copies[index] for index in indexes]
            known = {home.position: rows[home] for copy in group if (home := copy.home) in rows}
            plan = starts(known, [copy.due for copy in group], self._epoch.number, fence, self._clock.wall())
            if plan.stale:
                raise StaleFence(f"the tailer {self._source!r}: a newer owner runs items of {source}/{partition}")
            of = [(steps[copy.batch], copy.index) for copy in group]  # its step, and its index in that one's batch
            for number in plan.over:
                step, index = of[number]
                step.over.append(index)
            for number, until in plan.wait.items():
                step, index = of[number]
                step.wait[index] = until
            for number, row in plan.append.items():
                step, index = of[number]
                step.append[index] = row
            for number, row in plan.guard.items():
                step, index = of[number]
                step.guard[index] = row
            for number, (before, after) in plan.start.items():
                step, index = of[number]
                if may_be_adopted and is_suspect(before, self._epoch.number):
                    step.later.append(index)
                else:
                    change = step.start[index] = RowChange(group[number].home, before, after)
                    writing.append((step, index, change))
        answers = await self._rows.write([change for *_, change in writing])
        for (step, index, change), answer in zip(writing, answers, strict=True):
            (step.going if answer == change.after else step.again).append(index)
        for step in steps:
            step.going.sort()
        return steps

    async def _known(self, copies: Sequence[Copy], homes: Sequence[RowHome]) -> dict[RowHome, LedgerEntry]:
        """The rows that there are: remembered ones only for copies that start from them. Where an item has two copies
        all rows are read, since the second copy's end would rest on the first one's row."""
        epoch, now = self._epoch.number, self._clock.wall()
        known: dict[RowHome, LedgerEntry] = {}
        for copy in copies:
            row = self._row_cache.take(copy.home)
            if row is not None and may_start_unread(row, copy.due.n, epoch, now):
                known[copy.home] = row
        if len(set(homes)) < len(homes):
            known.clear()
        unknown = [home for home in homes if home not in known]
        return known | await self._rows.read(unknown) if unknown else known


def _copies(together: Sequence[Starting]) -> tuple[list[Copy], list[list[int]]]:
    """The copies that have a row; and, of each batch, the indexes of its copies without one."""
    copies: list[Copy] = []
    without: list[list[int]] = []
    for number, starting in enumerate(together):
        items = starting.items
        bare: list[int] = []
        for index, item in items.mapped.parked.items():
            home = home_of(item)
            if home is None:
                bare.append(index)
                continue
            part, position = items.part(index), items.position(index)
            known = part.rows.get(position) if part.rows else None
            trouble = part.troubles.get(position) if part.troubles else None
            copies.append(Copy(number, index, home, Due(home.position, item.n, known, trouble)))
        without.append(bare)
    return copies, without
