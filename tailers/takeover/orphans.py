"""Orphans of one stream tailer: items that a former owner had detached (departures/detaching.py), their rows, their
guards, and perhaps their runs. Pure: `rules/orphans.py` has the steps, `orphan_shell.py` reads, writes and tells.

An orphan that still runs and was adopted is this owner's: its record is read again, so that it can be settled like any
other, and when the source has it no more, its guard stands in for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...model.ledger import LedgerEntry
from ...model.workload import FLIGHT_ITEMS
from ...sdk.source import StreamBatch
from ..departures.departure import ended_item
from ..departures.departures import NOT_RUN, Departures
from ..departures.detaching import Detaching
from ..items import Items, chosen
from ..ledger.rows import RowChange, RowHome
from ..mapping.target import Target
from ..partition import Partition
from ..rules.ledger import released
from ..rules.orphans import Orphan, OrphanStep, found, written
from ..surroundings import Surroundings
from .inherited import Inherited

#: Rows in one write, and records in one read.
AT_ONCE = FLIGHT_ITEMS


class OrphanBatch(NamedTuple):
    """Some orphans of a partition that take the same step, and the writes of their rows where that is the step."""

    part: Partition
    orphans: list[Orphan]
    changes: Sequence[RowChange] = ()


class Orphans:
    """The orphans of one tailer, for as long as one opening of its source lasts. `source` is the tailer's name.

    Invariant: an orphan is in `_by_step` until it is taken for its step; the taker tells what came of it.
    """

    def __init__(
        self,
        source: str,
        target: Target,
        seen: Surroundings,
        departures: Departures,
        inherited: Inherited,
        detaching: Detaching,
    ) -> None:
        self._source = source
        self._target = target
        self._seen = seen
        self._departures = departures
        self._inherited = inherited
        self._detaching = detaching
        self._by_step: dict[OrphanStep, dict[Partition, list[Orphan]]] = {step: {} for step in OrphanStep}
        self._below: list[tuple[Partition, int, frozenset[int]]] = []

    # Rows.

    def unknown(self, part: Partition) -> list[RowHome]:
        """Places of rows to be read, of adopted items, when a partition was taken and nothing of it was read."""
        adopted = self._inherited.positions_of(part.name)
        return [RowHome(self._source, part.name, position) for position in adopted if position not in part.rows]

    def found(self, part: Partition, others: Iterable[LedgerEntry]) -> None:
        """Finds the orphans of a partition among its known rows and `others`, which were read besides."""
        rows = {row.position: row for row in (*part.rows.values(), *others) if row.is_detached}
        adopted, end = self._inherited.positions_of(part.name), part.frontier.position
        if end:
            self._below.append((part, end, frozenset(rows)))
        for position, row in sorted(rows.items()):
            until = self._inherited.elsewhere((part.name, position))
            passed = not part.frontier.unread(position, position)
            self._goes_on(part, found(row, passed=passed, adopted=position in adopted, until=until))

    def take_below(self) -> tuple[Partition, int, frozenset[int]] | None:
        """A partition whose rows below a position are to be looked at, except at these positions; None: there is
        none."""
        return self._below.pop(0) if self._below else None

    def passed(self, part: Partition, rows: Iterable[LedgerEntry], known: frozenset[int]) -> None:
        """Takes rows of items that were passed before this owner came; those not `known` do not run."""
        for row in rows:
            if row.is_detached and row.position not in known:
                self._goes_on(part, found(row, passed=True, adopted=False, until=None))

    def released(self, some: OrphanBatch, answers: Sequence[LedgerEntry | None]) -> None:
        """Takes the rows as they stand after they were written."""
        for orphan, change, row in zip(some.orphans, some.changes, answers, strict=True):
            self._goes_on(some.part, written(orphan, change.after, row))

    # Records.

    def recorded(self, some: OrphanBatch, there: StreamBatch) -> None:
        """Takes the records, as far as the source has them, of orphans that run below this owner."""
        part, rows = some.part, {each.row.position: each.row for each in some.orphans}
        there = _whole(there)
        gone = sorted(rows.keys() - set(there.positions))
        self._detaching.bare.update((part.name, position) for position in gone)
        for batch in (there, without_payload(part, gone)):
            items = self._items(part, batch)
            part.detached |= {position: rows[position] for position in batch.positions}
            self._inherited.took(items)

    def copied(self, some: OrphanBatch, there: StreamBatch) -> None:
        """Takes the records, as far as the source has them, of orphans that are to run: each does so at once, as a
        copy."""
        part, rows = some.part, {each.row.position: each.row for each in some.orphans}
        items = self._items(part, _whole(there))
        for index, position in items.places():
            row = part.detached[position] = rows[position]
            self._departures.append_again(ended_item(items, index, row.first_seen, 0, NOT_RUN), row)

    def _items(self, part: Partition, batch: StreamBatch) -> Items:
        items = Items(part, batch, self._target.mapping.map(batch))
        part.window.take(len(items), items.size)
        return items

    # Steps.

    def _goes_on(self, part: Partition, orphan: Orphan) -> None:
        if orphan.step is OrphanStep.WAIT:
            self._detaching.over_at(orphan.until, part, orphan.row)
        elif orphan.step is not OrphanStep.CARED:
            self._by_step[orphan.step].setdefault(part, []).append(orphan)

    def take(self, step: OrphanStep) -> OrphanBatch | None:
        """Some orphans whose next step is this one, by rising position; None: there are none."""
        waiting = self._by_step[step]
        if not waiting:
            return None
        part, orphans = next(iter(waiting.items()))
        some, rest = orphans[:AT_ONCE], orphans[AT_ONCE:]
        if rest:
            waiting[part] = rest
        else:
            del waiting[part]
        if step is not OrphanStep.RELEASE:
            return OrphanBatch(part, some)
        rows = [(each.row, released(each.row, self._seen.wall)) for each in some]
        homes = [RowHome(self._source, part.name, row.position) for row, _ in rows]
        return OrphanBatch(part, some, [RowChange(home, *row) for home, row in zip(homes, rows, strict=True)])


def _whole(batch: StreamBatch) -> StreamBatch:
    """The records without those that the source cannot read."""
    return chosen(batch, [index for index in range(len(batch.positions)) if index not in batch.refused])


def without_payload(part: Partition, positions: list[int]) -> StreamBatch:
    """Records of which only the positions are known."""
    count = len(positions)
    return StreamBatch(part.name, positions, [0.0] * count, [""] * count, [()] * count, [b""] * count)
