"""Departures of a stream tailer's items: to the delay service, the dead letters, the results, or over as they are.

A park writes the item's row in the ledger before and after (L15); a copy of the delay service that ends has that in its
row too, before it is settled. `destinations.py` has the queues.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ...model.audit import Fate
from ...model.drop import Cause, Drop
from ...model.ledger import LedgerEntry, LedgerPlace
from ...model.outcome import Outcome
from ...model.parked import Parked
from ...model.workload import DroppedBy, Ended
from ..counts import TailerCounts
from ..hand_out import HandOut
from ..items import Items
from ..ledger.rows import RowHome, home_of
from ..partition import Partition
from ..rules.departure_steps import Step, Way, begin, resume
from ..rules.detached import guard_due
from ..rules.ledger import Find, found, parking, suspect, throttled
from ..rules.settlement import Action, History, Settlement
from ..surroundings import Decisions, Surroundings
from .dead_letters import letter_of
from .departure import Departure, EndedItem, copy_of, departure, ended_item, ended_of, settle

#: The end of an item that was not run, and of one that plainly succeeded.
NOT_RUN, SUCCESS = Ended(Outcome.HELD), Ended(Outcome.SUCCESS)
#: Fates of items whose rows say that they are over.
_FATES = {LedgerPlace.DONE: Fate.SUCCEEDED, LedgerPlace.DEAD: Fate.DEAD}
#: The note of a drop by a gate that its scheduler does not describe.
UNKNOWN = DroppedBy(0, "", "the scheduler named no gate")
#: Ways of items that do not leave, or not yet: `stayed` hears of them.
_STAYS = frozenset((Way.COUNT, Way.DETACH, Way.FREE))


def fate_of(row: LedgerEntry | None) -> Fate:
    """The fate of an item, by its row: the ledger tells how an item ended that was ever parked."""
    return Fate.DELAYED if row is None or row.n else _FATES.get(row.place, Fate.DELAYED)


class Departures:
    """The ways out of one tailer, pure: a departure is among its decisions, and `arrived` hears of it. `stayed` gets
    departures of items that stay where they are, or are out still, when their row is durable, or when there is no room
    for their letter. `redrives`: what dies here in an order comes back here when it is redriven.

    Invariant: its length is how many are on their way into a store, and nowhere else.
    """

    def __init__(
        self,
        tailer: str,
        counts: TailerCounts,
        seen: Surroundings,
        decided: Decisions,
        stayed: Callable[[Way, list[Departure]], None],
        *,
        redrives: bool,
    ) -> None:
        self._tailer = tailer
        self._redrives = redrives
        self._counts = counts
        self._seen = seen
        self._decided = decided
        self._stayed = stayed
        self._leaving = 0

    def __len__(self) -> int:
        return self._leaving

    def _add(self, departing: Departure, due_in: float | None = None) -> None:
        if departing.leg.step is Step.DONE and not departing.letter:
            self._gone([departing])
            return
        self._leaving += not departing.runs
        self._decided.departures.append((departing, due_in))

    def arrived(self, batch: list[Departure]) -> None:
        """Counts and settles departures whose steps are done."""
        self._leaving -= sum([not each.runs for each in batch])
        self._gone(batch)

    def _gone(self, batch: list[Departure]) -> None:
        left: list[Departure] = []
        stayed: defaultdict[Way, list[Departure]] = defaultdict(list)
        for each in batch:
            way = each.leg.way
            if way in _STAYS or each.leg.step is Step.NO_ROOM:
                stayed[way].append(each)
                continue
            left.append(each)
            self._count(way)
        settle(left)
        for way, those in stayed.items():
            self._stayed(way, those)
        self._decided.wake = True

    def _count(self, way: Way) -> None:
        match way:
            case Way.PARK:
                self._counts.parked += 1
            case Way.BURY:
                self._counts.dead += 1
            case Way.GUARD | Way.GUARD_SOONER:
                pass  # it still runs
            case _:
                self._counts.settled += 1
                self._counts.dropped += way is Way.DROP

    # To the delay service.

    def park(self, item: EndedItem, settlement: Settlement, now: float) -> None:
        """Sends an item to the delay service, until it is due again: `now` is wall clock. An item that was parked
        before keeps its id, origin and first sight."""
        home, due = self._home(item), now + settlement.delay
        row: LedgerEntry | None = None
        if home is not None:
            tries = item.tries(settlement.reason, now)
            row = parking(item.row, home.position, settlement, due, item.fence, item.first_seen, tries)
        copy = copy_of(item, self._origin(item), home, settlement, due, item.first_seen, row)
        if item.former is not None:
            self._counts.ageing.seen((copy,))
        self._add(departure(item, Fate.DELAYED, begin(Way.PARK, item.row, row), home, copy), settlement.delay)

    def append_again(self, item: EndedItem, row: LedgerEntry) -> None:
        """Sends an item to the delay service as its row says: the writer of the row may have died before it did (L15,
        L18)."""
        going = departure(item, Fate.DELAYED, resume(Way.PARK, row), self._home(item), self._copy(item, row, row.due))
        self._add(going, row.due - self._seen.wall)

    def detach(self, item: EndedItem, before: LedgerEntry | None, row: LedgerEntry | None, *, runs: bool) -> None:
        """Writes the item's row, then its guard; `row` None: its row `before` says so already. `runs`: it runs below
        this owner; else where nobody hears of it, and only its guard is wanted."""
        wanted = before if row is None else row
        assert wanted is not None
        leg = resume(Way.DETACH, wanted) if row is None else begin(Way.DETACH, before, row)
        going = departure(item, Fate.DELAYED, leg, self._home(item), self._guard(item, wanted))
        going.runs = runs
        self._add(going)

    def guard_again(self, item: EndedItem, row: LedgerEntry) -> None:
        """Sends a guard that came due while its item runs back into the delay service; then its copy is over."""
        self._add(departure(item, Fate.DELAYED, begin(Way.GUARD), None, self._guard(item, row)))

    def _guard(self, item: EndedItem, row: LedgerEntry) -> Parked:
        """The copy that keeps a detached item, as its row says, until it is looked at again."""
        return self._copy(item, row, guard_due(self._seen.wall, row.first_seen))

    def _copy(self, item: EndedItem, row: LedgerEntry, due: float) -> Parked:
        settlement = Settlement(Action.PARK, 0.0, row.attempts, row.crashes, row.throttles, "")
        return copy_of(item, self._origin(item), self._home(item), settlement, due, row.first_seen, row)

    # To the place where it ends.

    def bury(
        self,
        item: EndedItem,
        settlement: Settlement,
        now: float,
        fate: Fate = Fate.DEAD,
        stays: EndedItem | None = None,
    ) -> None:
        """Sends an item to the dead letters at `now`, wall clock, with the reason; then it ended as `fate` says.
        `stays`: the item, in columns of its own, if it can run again from its source where its letter finds no room;
        else the letter waits for some."""
        home = self._home(item)
        letter = letter_of(item, self._origin(item), home, settlement, now, in_line=self._redrives and item.in_order)
        self._end(Way.BURY, item, LedgerPlace.DEAD, fate, letter, stays)

    def store(self, item: EndedItem, result: bytes) -> None:
        """Keeps the return value of an item that succeeded."""
        self._end(Way.STORE, item, LedgerPlace.DONE, Fate.SUCCEEDED, (item.id, result, item.kind.tenant))

    def drop(self, item: EndedItem) -> None:
        """Notes that an operator's gate dropped an item: by which version, who and why. Of a redriven one the audit
        knows how its first life ended."""
        if item.position in item.partition.redriven:
            self.end(item, Fate.DROPPED)
            return
        gate, position = item.ended.dropped_by or UNKNOWN, item.position
        note = Drop(position, position, 1, Cause.GATE, *gate, self._seen.wall)
        self._end(Way.DROP, item, LedgerPlace.DONE, Fate.DROPPED, note)

    def end(self, item: EndedItem, fate: Fate) -> None:
        """Ends an item that is over. A copy's row says so first, then it is settled."""
        self._end(Way.END, item, LedgerPlace.DONE, fate, None)

    def _end(
        self,
        way: Way,
        item: EndedItem,
        place: LedgerPlace,
        fate: Fate,
        load: Any,
        stays: EndedItem | None = None,
    ) -> None:
        """Ends an item. The last write of a row is that of a copy, or of a detached item; the row of any other item of
        the source itself goes with the checkpoint."""
        self._counts.ageing.over(item.id)
        row, home = item.row, None
        if row is not None and (item.former is not None or row.is_detached):
            home = self._home(item)
        after = None if home is None or row is None else row._replace(place=place)
        going = departure(item, fate, begin(way, row, after), home, load)
        going.item = stays
        self._add(going)

    def redriven(self, out: HandOut, indexes: list[int]) -> list[int]:
        """Ends the redriven items among those that succeeded; returns the indexes of the others."""
        part, positions = out.place.partition, out.place.batch.positions
        mine = [index for index in indexes if positions[index] in part.redriven]
        for index in mine:
            self.end(ended_of(out, index, SUCCESS), Fate.SUCCEEDED)
            out.release((index,))
        return [index for index in indexes if index not in mine] if mine else indexes

    def bury_refused(self, items: Items) -> Items:
        """Makes dead letters of the items that the source cannot hand out as they are; returns the others."""
        refused = items.batch.refused
        for index, why in refused.items():
            item = ended_item(items, index, self._seen.wall, 0, Ended(Outcome.FATAL, why))
            self.bury(item, Settlement(Action.DEAD, 0.0, 0, 0, 0, why), item.pushed_at)
        return items.chosen([index for index in range(len(items)) if index not in refused])

    # By its row alone.

    def to_run(self, items: Items) -> Items:
        """The items that are to be run from their source. All others are settled; of these, an item that may not have
        reached the delay service is appended again first (L15)."""
        going: list[int] = []
        now = self._seen.wall
        for index, position in enumerate(items.batch.positions):
            row = items.partition.rows.get(position)
            item = ended_item(items, index, now, 0, NOT_RUN)
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

    def skip(self, items: list[EndedItem], fate: Fate) -> None:
        """Settles items that are over or elsewhere, as their rows say."""
        if items:
            self._counts.ageing.over(*[item.id for item in items])
            self._gone([departure(item, fate, begin(Way.END)) for item in items])

    def release(self, item: EndedItem, row: LedgerEntry) -> None:
        """Writes the row of a detached item whose payload is not here any more and that does not run: from now on the
        row says when its guard may start it."""
        self._add(departure(item, Fate.DELAYED, begin(Way.RELEASE, item.row, row), self._home(item)))

    def free(self, part: Partition, before: LedgerEntry, row: LedgerEntry) -> None:
        """Writes the row of an item that a former owner had detached, and of which nothing runs any more: its guard may
        start it."""
        home = RowHome(self._tailer, part.name, row.position)
        self._add(Departure(part, row.position, 0, Fate.DELAYED, begin(Way.FREE, before, row), home, runs=True))

    def count(self, item: EndedItem, history: History, not_before: float) -> None:
        """Writes the counts of an item that stays in the stream that this tailer reads, and the time (monotonic) before
        which it must not start, so that both outlive this tailer. Then it may run again."""
        row, home = item.row, self._home(item)
        due = self._seen.wall + not_before - self._seen.monotonic if not_before else 0.0
        after: LedgerEntry | None = None  # a copy that has no row
        if item.former is None:
            throttled_only = item.ended.outcome == Outcome.THROTTLED  # which is no attempt
            tries = () if throttled_only else item.tries(item.ended.reason, self._seen.wall)
            after = suspect(row, item.position, history, due=due, tries=tries, fence=item.fence)
            if history.attempt > 1:
                self._counts.ageing.waits(item.id, item.kind, due or self._seen.wall, history.attempt - 1)
        elif home is not None and row is not None:
            after = throttled(row, history, due)
        going = departure(item, Fate.DELAYED, begin(Way.COUNT, row, after), home)
        going.item, going.not_before = item.alone(), not_before
        self._add(going)

    def _home(self, item: EndedItem) -> RowHome | None:
        return RowHome(self._tailer, *item.key) if item.former is None else home_of(item.former)

    def _origin(self, item: EndedItem) -> str:
        """The tailer that the item first came from."""
        return self._tailer if item.former is None else item.former.tailer
