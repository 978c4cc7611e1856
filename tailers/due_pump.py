"""The pump of what is due: its items are copies, which start only by compare-and-set of their row (LEASES L16 to L19).

Between credit and push stands the ledger: copies read their rows, write those that may start under the flight's fence,
and what they won is pushed. The others are over: another copy ran, or runs. Copies that have no row start at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from ..sdk.model.audit import Fate
from ..sdk.model.demand import Cell
from ..sdk.model.errors import StaleFence
from ..sdk.model.ledger import Entry, Place
from ..sdk.model.outcome import Outcome
from ..sdk.model.workload import Ended, Extra
from ..sdk.source import StreamBatch, StreamSource
from ..stores.checkpoints.checkpoints import Mark
from .departures import Departing, Tag
from .inherited import Record
from .mapping import Mapped
from .partition import Partition, chosen
from .pump import Counts, Out, Setup
from .rows import Home, RowChange, home_of
from .rules.credit import Credit
from .rules.ledger import Due, is_suspect, starts
from .stream_pump import StreamPump


class Starting(NamedTuple):
    """Copies on their way to a push. Their credit is taken, with the session of that time."""

    part: Partition
    batch: StreamBatch
    mapped: Mapped
    counts: Counter[Cell]
    credit: Credit

    def items(self, now: float) -> list[Departing]:
        """Each of them as one that was not run."""
        return _not_run(self.part, self.batch, self.mapped, now)


@dataclass(slots=True)
class Step:
    """What becomes of the copies of a batch, by index: `start` are the rows to write, of which those in `going` were
    won (beside copies without a row) and for those in `again` another write came between; `later` may be adopted, and
    `wait` are to wait until a time, wall clock."""

    fence: int
    going: list[int] = field(default_factory=list)
    start: dict[int, RowChange] = field(default_factory=dict)
    append: dict[int, Entry] = field(default_factory=dict)
    over: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    wait: dict[int, float] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)


class DuePump(StreamPump):
    """Invariant: an item that has a row is out only while its row says RUNNING, this epoch, and its flight's fence."""

    def __init__(self, setup: Setup, counts: Counts, source: StreamSource) -> None:
        super().__init__(setup, counts, source)
        self._starting: list[Starting] = []
        self._ends: list[tuple[Record, Ended]] = []
        self._start_wake = asyncio.Event()

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        return [*super().steps(), self._start()]

    @property
    def busy(self) -> bool:
        return bool(self._starting or self._ends) or super().busy

    async def _add(self, name: str) -> Partition:
        """The rows of what is due are their sources', read when it starts."""
        part = self._partitions[name] = Partition(name, self._marks.get(name, Mark(0)))
        return part

    def _push(self, part: Partition, batch: StreamBatch, mapped: Mapped, counts: Counter[Cell]) -> None:
        credit = self.session.credit
        credit.take(counts)
        self._starting.append(Starting(part, batch, mapped, counts, credit))
        self._start_wake.set()

    def leaving(self) -> Iterator[Tag]:
        """What is on its way into a store, or to its start."""
        starting = [item.tag(Fate.DELAYED) for each in self._starting for item in each.items(self.clock.wall())]
        ended = [Tag(part, batch.positions[0], 0, Fate.DELAYED) for (part, batch, _), _ in self._ends]
        return chain(super().leaving(), starting, ended)

    async def _start(self) -> None:
        while True:
            await self._start_wake.wait()
            self._start_wake.clear()
            while self._ends:
                await self._settle_inherited()
            while self._starting:
                starting = self._starting[0]
                step = await self._ask(starting)
                del self._starting[0]
                starting.credit.give(starting.counts)
                self._apply(starting, step)
                self.wake()

    async def _ask(self, starting: Starting) -> Step:
        """Reads the rows of copies, and writes those that may run under a new fence."""
        part, batch, mapped = starting.part, starting.batch, starting.mapped
        homes = {index: home for index, item in mapped.parked.items() if (home := home_of(item)) is not None}
        rows = await self._rows.read(homes.values()) if homes else {}
        fences = [item.fence for item in mapped.parked.values()] + [row.fence for row in rows.values()]
        step = Step(self._epoch.next_fence(max(fences, default=0)))
        step.going = [index for index in range(len(batch.positions)) if index not in homes]
        for (source, partition), indexes in _grouped(homes).items():
            known = {home.position: row for home, row in rows.items() if home[:2] == (source, partition)}
            positions = [batch.positions[index] for index in indexes]
            copies = [
                Due(homes[index].position, mapped.parked[index].n, part.rows.get(position), part.troubles.get(position))
                for index, position in zip(indexes, positions, strict=True)
            ]
            plan = starts(known, copies, self._epoch.number, step.fence, self.clock.wall())
            if plan.stale:
                self.counts.refused()
                raise StaleFence(f"{self.config.name}: a newer owner runs items of {source}")
            step.over += [indexes[place] for place in plan.over]
            step.wait.update((indexes[place], due) for place, due in plan.wait.items())
            step.append.update((indexes[place], row) for place, row in plan.append.items())
            for place, (before, after) in plan.start.items():
                if is_suspect(before, self._epoch.number) and self._may_be_adopted:
                    step.later.append(indexes[place])
                else:
                    step.start[indexes[place]] = RowChange(homes[indexes[place]], before, after)
        answers = await self._rows.write(list(step.start.values()))
        for (index, change), row in zip(step.start.items(), answers, strict=True):
            (step.going if row == change.after else step.again).append(index)
        step.going.sort()
        return step

    def _apply(self, starting: Starting, step: Step) -> None:
        items = starting.items(self.clock.wall())
        self._departures.skip([items[index] for index in step.over], Fate.FILTERED)
        for index, row in step.append.items():
            self._departures.append_again(items[index], row)
        self._hold(starting, step.again)
        self._hold(starting, step.later, self.clock.monotonic() + self.sizes.heartbeat)
        for index, due in step.wait.items():
            self._hold(starting, [index], self.clock.monotonic() + max(1e-6, due - self.clock.wall()))
        for index in step.going:
            if index in step.start:
                _as_row_says(starting, index, step.start[index])
        if starting.credit is not self.session.credit or not self._succession.may_push:
            self._hold(starting, step.going)  # another session: they start anew, from the rows that they have now
        elif step.going:
            part, batch, mapped, counts, _ = starting
            if len(step.going) < len(batch.positions):
                batch, mapped = chosen(batch, step.going), mapped.chosen(step.going)
                counts = Counter(mapped.cells)
            self._hand_out(part, batch, mapped, counts, step.fence)

    def _hold(self, starting: Starting, indexes: Iterable[int], not_before: float = 0.0) -> None:
        for index in indexes:
            self._holding.hold(starting.part, starting.mapped.kinds[index], starting.batch, index, not_before)

    # What was adopted: its copies run under rows that a former owner wrote.

    @property
    def _may_be_adopted(self) -> bool:
        """Whether a row that a former owner left running may be of something that was adopted, and still runs."""
        adopted = self._succession.inherited.pending or self._ends or not self._epoch.quiet()
        return self._epoch.adopted and bool(adopted)

    def _inherited_ended(self, record: Record, ended: Ended) -> None:
        self._ends.append((record, ended))
        self._start_wake.set()

    async def _settle_inherited(self) -> None:
        """Reads the row of a copy that a former owner started, then settles it as one of this epoch."""
        record, ended = self._ends[0]
        part, batch, fence = record
        home = home_of(self._aim.mapping.map(batch).parked[0])
        row = None if home is None else (await self._rows.read([home])).get(home)
        del self._ends[0]
        if home is None or (row is not None and row.place is Place.RUNNING and row.fence == fence):
            if row is not None:
                part.rows[batch.positions[0]] = row
            super()._inherited_ended(record, ended)
        else:  # its row went on without it
            self._departures.skip(_not_run(part, batch, self._aim.mapping.map(batch), self.clock.wall()), Fate.FILTERED)
        self.wake()

    def succeeded(self, out: Out, indexes: list[int]) -> None:
        """Each row says so before its copy is settled."""
        part, batch, mapped = out.place
        for index in indexes:
            self._departures.end(
                Departing(part, batch, mapped, index, out.pushed_at, out.flight.fence, Ended(Outcome.SUCCESS)),
                Fate.SUCCEEDED,
            )
        out.release(indexes)


def _not_run(part: Partition, batch: StreamBatch, mapped: Mapped, now: float) -> list[Departing]:
    ended = Ended(Outcome.HELD)
    return [Departing(part, batch, mapped, index, now, 0, ended) for index in range(len(batch.positions))]


def _grouped(homes: dict[int, Home]) -> dict[tuple[str, str], list[int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for index, home in homes.items():
        groups.setdefault(home[:2], []).append(index)
    return groups


def _as_row_says(starting: Starting, index: int, change: RowChange) -> None:
    """A copy starts with what its row says, not with what its record said when it was parked."""
    row = change.after
    starting.part.rows[starting.batch.positions[index]] = row
    starting.mapped.attempts[index] = row.attempts + 1
    if row.crashes or (change.before is not None and is_suspect(change.before, row.epoch)):
        extra = starting.mapped.extras.setdefault(index, Extra())
        extra.crashes, extra.alone = row.crashes, True
