"""Stream items that leave for a store: the delay service, the dead letters, the results, the notes of what was dropped.
Only when that is durable may the frontier pass them (law 3).

Who parks writes the item's row in the ledger before and after (L15); what ends as a copy of the delay service ends in
its row too, before it is settled. Batches, never item by item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from itertools import chain
from typing import Any

from msgspec.structs import replace

from ...sdk.model.audit import Fate
from ...sdk.model.dead_letter import DeadLetter
from ...sdk.model.drop import Cause, Drop
from ...sdk.model.errors import UserError
from ...sdk.model.ledger import LedgerEntry, LedgerPlace
from ...sdk.model.outcome import Outcome
from ...sdk.model.parked import Parked
from ...sdk.model.workload import DroppedBy, Ended
from ..counts import Counts
from ..items import ItemKey, Items
from ..ledger.rows import RowChange, RowHome, Rows, home_of
from ..partition import Partition
from ..resources import Setup
from ..rules.detached import FIRST_LOOK, guard_due
from ..rules.ledger import Find, Next, after_parking, found, is_soon, parking, suspect, throttled
from ..rules.settlement import Action, History, Settlement
from .departure import OUTCOMES, Departing, Leaving, Tag, departing
from .durable import DurableWriter
from .letters import unparkable
from .parking import as_row_says

#: How an item ended that was not run.
_NOT_RUN = Ended(Outcome.HELD)
#: What became of an item whose row says that it is over.
_FATES = {LedgerPlace.DONE: Fate.SUCCEEDED, LedgerPlace.DEAD: Fate.DEAD}
#: What is noted of a drop by a gate that its scheduler does not describe.
UNKNOWN = DroppedBy(0, "", "the scheduler named no gate")


def fate_of(row: LedgerEntry | None) -> Fate:
    """Of what was ever parked the ledger says what became of it."""
    return Fate.DELAYED if row is None or row.n else _FATES.get(row.place, Fate.DELAYED)


class Departures:
    """The ways out of one tailer. `departed` gets the tags of what is durable; `counted` each item that stays, when its
    row says what it has behind it, with the time before which it must not start."""

    def __init__(
        self,
        setup: Setup,
        rows: Rows,
        counts: Counts,
        departed: Callable[[list[Tag]], None],
        counted: Callable[[Departing, float], None],
    ) -> None:
        self._tailer = setup.config.name
        self._environment = setup.environment
        self._rows = rows
        self._remembered = setup.remembered
        self._delay = setup.parking
        self._clock = setup.clock
        self._counts = counts
        self._departed = departed
        self._tell_counted = counted
        many = setup.config.order == "none"  # in order, the next one waits until the one before it is gone
        self._parks: DurableWriter[Leaving, Tag] = DurableWriter(self._write_parks, self._parked, gathering=many)
        self._dead: DurableWriter[tuple[DeadLetter, RowChange | None], Tag] = DurableWriter(
            self._write_dead, self._died, gathering=many
        )
        self._drops: DurableWriter[tuple[Partition, Drop, RowChange | None], Tag] = DurableWriter(
            self._write_drops, self._dropped
        )
        self._results: DurableWriter[tuple[str, bytes, RowChange | None], Tag] = DurableWriter(
            self._write_results, self._stored
        )
        self._over: DurableWriter[RowChange, Tag] = DurableWriter(rows.write, self._stored, gathering=many)
        self._guards: DurableWriter[Parked, Tag] = DurableWriter(self._write_guards, departed, gathering=many)
        self._counting: dict[ItemKey, tuple[Departing, float]] = {}
        self._counted: DurableWriter[RowChange, Tag] = DurableWriter(rows.write, self._were_counted)
        self._writers = (self._parks, self._dead, self._results, self._drops, self._over, self._guards, self._counted)

    def __len__(self) -> int:
        return sum(len(writer) for writer in self._writers)

    @property
    def failing(self) -> str:
        """Why a store refuses; empty when none does."""
        return next((writer.why for writer in self._writers if writer.why), "")

    def tags(self) -> Iterator[Tag]:
        """Everything that is on its way into a store."""
        return chain.from_iterable(writer.tags() for writer in self._writers)

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops that write."""
        return [writer.run() for writer in self._writers]

    def park(self, item: Departing, settlement: Settlement, now: float) -> None:
        """To the delay service, until it is due again: `now` is wall clock. What was parked before keeps its id, origin
        and first sight."""
        before = item.row
        home = self._home(item)
        first_seen, due = item.first_seen, now + settlement.delay
        wanted: LedgerEntry | None = None
        if home is not None:
            tries = item.tries(settlement.reason, now)
            wanted = parking(before, home.position, settlement, due, item.fence, first_seen, tries)
        parked = self._to_park(item, home, settlement, due, first_seen, wanted)
        leaving = Leaving(parked, home, before, wanted)
        self._parks.add(leaving, len(parked.payload), item.tag(Fate.DELAYED), settlement.delay)

    def append_again(self, item: Departing, row: LedgerEntry) -> None:
        """To the delay service, as its row says, which somebody wrote who may have died before that (L15, L18)."""
        settlement = Settlement(Action.PARK, 0.0, row.attempts, row.crashes, row.throttles, "")
        home = self._home(item)
        parked = self._to_park(item, home, settlement, row.due, row.first_seen, row)
        leaving = Leaving(parked, home, None, row, written=True)
        self._parks.add(leaving, len(parked.payload), item.tag(Fate.DELAYED), row.due - self._clock.wall())

    def guard(self, item: Departing, row: LedgerEntry) -> Parked:
        """What keeps a detached item, as its row says, until it is looked at again."""
        settlement = Settlement(Action.PARK, 0.0, row.attempts, row.crashes, row.throttles, "")
        due = guard_due(self._clock.wall(), row.first_seen)
        return self._to_park(item, self._home(item), settlement, due, row.first_seen, row)

    def guard_again(self, item: Departing, row: LedgerEntry) -> None:
        """A guard was looked at while its item runs: it goes back into the delay service, then its copy is over."""
        parked = self.guard(item, row)
        self._guards.add(parked, len(parked.payload), item.tag(Fate.DELAYED))

    def release(self, item: Departing, row: LedgerEntry) -> None:
        """A detached item whose payload is not here any more does not run: from now on its row says when its guard
        may start it."""
        home, before = self._home(item), item.row
        assert home is not None
        self._over.add(RowChange(home, before, row), 0, item.tag(Fate.DELAYED))

    def _to_park(
        self,
        item: Departing,
        home: RowHome | None,
        settlement: Settlement,
        due: float,
        first_seen: float,
        row: LedgerEntry | None,
    ) -> Parked:
        extra = item.extra
        return Parked(
            tailer=self._tailer if item.former is None else item.former.tailer,
            id=item.id,
            kind=item.kind,
            payload=item.payload,
            due=due,
            first_seen=first_seen,
            attempt=settlement.failed + 1,
            crashes=settlement.crashes,
            throttles=settlement.throttles,
            fence=item.fence if row is None or item.fence > row.fence else row.fence,
            reason=settlement.reason,
            key=extra.key,
            headers=item.headers,
            expires_at=extra.expires_at,
            progress=item.progress,
            partition="" if home is None else home.partition,
            position=0 if home is None else home.position,
            n=0 if row is None else row.n,
        )

    def bury(self, item: Departing, settlement: Settlement, now: float, fate: Fate = Fate.DEAD) -> None:
        """To the dead letters at `now`, wall clock, with the reason; then it ended as `fate` says."""
        home = self._home(item)
        letter = DeadLetter(
            id=item.id,
            tailer=self._tailer if item.former is None else item.former.tailer,
            kind=item.kind,
            payload=item.payload,
            outcome=OUTCOMES[item.ended.outcome],
            reason=settlement.reason,
            attempts=settlement.failed,
            crashes=settlement.crashes,
            first_seen=item.first_seen,
            died_at=now,
            key=item.extra.key,
            headers=item.headers,
            progress=item.progress,
            partition="" if home is None else home.partition,
            position=-1 if home is None else home.position,
            tries=item.tries(settlement.reason, now),
        )
        self._dead.add((letter, self._ending(item, LedgerPlace.DEAD)), len(letter.payload), item.tag(fate))

    def store(self, item: Departing, result: bytes) -> None:
        """A success whose return value is kept."""
        stored = (item.id, result, self._ending(item, LedgerPlace.DONE))
        self._results.add(stored, len(result), item.tag(Fate.SUCCEEDED))

    def drop(self, item: Departing) -> None:
        """A note of what an operator's gate dropped: by which version, who and why."""
        gate, position = item.ended.dropped_by or UNKNOWN, item.position
        drop = Drop(position, position, 1, Cause.GATE, *gate, self._clock.wall())
        change = self._ending(item, LedgerPlace.DONE)
        self._drops.add((item.partition, drop, change), len(item.payload), item.tag(Fate.DROPPED))

    def bury_refused(self, items: Items) -> Items:
        """The items without what its source cannot hand out as it is: that becomes dead letters."""
        refused = items.batch.refused
        for index, why in refused.items():
            item = departing(items, index, self._clock.wall(), 0, Ended(Outcome.FATAL, why))
            self.bury(item, Settlement(Action.DEAD, 0.0, 0, 0, 0, why), item.pushed_at)
        return items.chosen([index for index in range(len(items)) if index not in refused])

    async def _write_drops(self, batch: list[tuple[Partition, Drop, RowChange | None]]) -> None:
        drops: dict[Partition, list[Drop]] = defaultdict(list)
        for part, drop, _ in batch:
            drops[part].append(drop)
        for part, those in drops.items():
            await self._environment.drops.add(self._tailer, part.name, those, part.frontier.position)
        await self._rows.write([change for *_, change in batch if change is not None])

    def _dropped(self, tags: list[Tag]) -> None:
        self._counts.dropped += len(tags)
        self._counts.settled += len(tags)
        self._departed(tags)

    def to_run(self, items: Items) -> Items:
        """The items that are to be run from their source. Of the others those that may not have reached the delay
        service are appended again (L15), and all are settled."""
        going: list[int] = []
        now = self._clock.wall()
        for index, position in enumerate(items.batch.positions):
            row = items.partition.rows.get(position)
            item = departing(items, index, now, 0, _NOT_RUN)
            match found(row):
                case Find.RUN | Find.ALONE:
                    going.append(index)
                case Find.APPEND if row is not None:
                    self.append_again(item, row)
                case Find.OUT:
                    pass  # detaching.py has it
                case _:
                    self.skip([item], fate_of(row))
        return items.chosen(going)

    def skip(self, items: list[Departing], fate: Fate) -> None:
        """Items that are over or elsewhere, as their rows say."""
        if items:
            self._stored([item.tag(fate) for item in items])

    def end(self, item: Departing, fate: Fate) -> None:
        """It is over. Of a copy first its row says so, then it is settled."""
        change = self._ending(item, LedgerPlace.DONE)
        if change is None:
            self._stored([item.tag(fate)])
        else:
            self._over.add(change, 0, item.tag(fate))

    def count(self, item: Departing, history: History, not_before: float) -> None:
        """An item that stays in the stream that this tailer reads: what it has behind it, and the time (monotonic)
        before which it must not start, outlive this tailer. Then it may run again."""
        item = item.alone()
        row, home = item.row, self._home(item)
        due = self._clock.wall() + not_before - self._clock.monotonic() if not_before else 0.0
        if item.former is None:
            throttled_only = item.ended.outcome == Outcome.THROTTLED  # which is no attempt
            tries = () if throttled_only else item.tries(item.ended.reason, self._clock.wall())
            after = suspect(row, item.position, history, due=due, tries=tries)
        elif home is not None and row is not None:
            after = throttled(row, history, due)
        else:  # parked by an older version: it has no row
            self._tell_counted(item, not_before)
            return
        assert home is not None
        self._counting[item.key] = item, not_before
        self._counted.add(RowChange(home, row, after), 0, item.tag(Fate.DELAYED))

    def _were_counted(self, tags: list[Tag]) -> None:
        for tag in tags:
            self._tell_counted(*self._counting.pop((tag.partition.name, tag.position)))

    def _home(self, item: Departing) -> RowHome | None:
        return RowHome(self._tailer, *item.key) if item.former is None else home_of(item.former)

    def _ending(self, item: Departing, place: LedgerPlace) -> RowChange | None:
        """The last write of the row of a copy, or of what was detached; None for any other item of the source itself,
        whose row goes with the checkpoint."""
        row = item.row
        if row is None or (item.former is None and not row.is_detached):
            return None
        home = self._home(item)
        return None if home is None else RowChange(home, row, row._replace(place=place))

    async def _write_parks(self, items: list[Leaving]) -> None:
        """Row, append, and the row again unless it is due soon (L15). What the delay service refuses for good (a delay
        beyond its bound) is a dead letter. Repeated whole until all of it is durable."""
        going = await self._to_append(items)
        refused: dict[int, str] = {}
        try:
            if going:
                await self._delay.park([leaving.parked for leaving in going])
        except UserError:
            for index, leaving in enumerate(going):
                try:
                    await self._delay.park([leaving.parked])
                except UserError as error:
                    refused[index] = str(error)
        if refused:
            letters = [
                unparkable(going[index].parked, going[index].home, why, self._clock.wall(), going[index].wanted)
                for index, why in refused.items()
            ]
            await self._environment.dead_letters.add(letters)
        now = self._clock.wall()
        soon: list[tuple[RowHome, LedgerEntry]] = []
        changes: list[RowChange] = []
        for index, leaving in enumerate(going):
            home, row = leaving.home, leaving.wanted
            if home is None or row is None:
                continue
            if index in refused:
                changes.append(RowChange(home, row, row._replace(place=LedgerPlace.DEAD)))
            elif is_soon(row, now):
                soon.append((home, row))
            else:
                changes.append(RowChange(home, row, row._replace(place=LedgerPlace.PARKED)))
        await self._rows.write(changes)
        self._remembered.keep(soon)

    async def _to_append(self, items: list[Leaving]) -> list[Leaving]:
        """Writes the rows; those that are to be appended after it, as their rows say."""
        going = [leaving for leaving in items if leaving.wanted is None or leaving.written]
        pending = [leaving for leaving in items if leaving.wanted is not None and not leaving.written]
        while pending:
            writing, pending = pending, []
            rows = await self._rows.write(
                [RowChange(each.home, each.before, each.wanted) for each in writing if each.home and each.wanted]
            )
            for leaving, row in zip(writing, rows, strict=True):
                assert leaving.wanted is not None
                step = after_parking(leaving.wanted, row)
                if step is Next.APPEND and row == leaving.wanted:
                    going.append(leaving)
                elif step is Next.APPEND:
                    going.append(replace(leaving, wanted=row, parked=as_row_says(leaving.parked, row)))
                elif step is Next.AGAIN and row is not None:
                    wanted = leaving.wanted._replace(n=row.n + 1)
                    parked = as_row_says(leaving.parked, wanted)
                    pending.append(replace(leaving, before=row, wanted=wanted, parked=parked))
        return going

    async def _write_guards(self, items: list[Parked]) -> None:
        """The bound on delays may have been lowered since they were parked first."""
        try:
            await self._delay.park(items)
        except UserError:
            soon = self._clock.wall() + FIRST_LOOK
            await self._delay.park([replace(item, due=min(item.due, soon)) for item in items])

    async def _write_dead(self, items: list[tuple[DeadLetter, RowChange | None]]) -> None:
        await self._environment.dead_letters.add([letter for letter, _ in items])
        await self._rows.write([change for _, change in items if change is not None])

    async def _write_results(self, items: list[tuple[str, bytes, RowChange | None]]) -> None:
        await self._environment.results.put({id_: result for id_, result, _ in items})
        await self._rows.write([change for *_, change in items if change is not None])

    def _parked(self, tags: list[Tag]) -> None:
        self._counts.parked += len(tags)
        self._departed(tags)

    def _died(self, tags: list[Tag]) -> None:
        self._counts.dead += len(tags)
        self._departed(tags)

    def _stored(self, tags: list[Tag]) -> None:
        self._counts.settled += len(tags)
        self._departed(tags)
