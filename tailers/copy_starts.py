"""Starts of copies that came due: from the read to the push, which waits for the compare-and-set of their rows. Pure.

Copies of many functions that are read together start together, as far as there is credit. The shell
(pumps/copy_starter.py) writes the rows of some batches at once, and tells the result for each copy: a copy that won
its row is pushed under the fence in that row, and any other one is over, since another copy ran or runs. An adopted
copy settles like one of this epoch, if its row says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..model.audit import Fate
from ..model.demand import Cell, Closed
from ..model.ledger import LedgerEntry, LedgerPlace
from ..model.outcome import Outcome
from ..model.workload import Ended, Extra
from .ageing import RetryAgeing
from .departures.departure import EndedItem, ended_item, ended_of
from .departures.departures import NOT_RUN, Departures
from .departures.detaching import PartitionPosition
from .hand_out import HandOut
from .holding import Holding
from .items import Items, joined
from .ledger.rows import RowChange, RowHome, home_of
from .rules.credit import Credit
from .rules.ledger import is_suspect
from .surroundings import Decisions, Push, Surroundings
from .takeover.inherited import InheritedItem

#: Outcomes of items that did not run, or may not have run: they come again.
_AGAIN = (Outcome.HELD, Outcome.LOST, Outcome.THROTTLED)


class Starting(NamedTuple):
    """Copies on their way to a push. Their credit is taken from the session of that time; `clogs`: the functions that
    were clogged then."""

    items: Items
    counts: Counter[Cell]
    credit: Credit
    clogs: Mapping[str, Closed]

    def not_run(self, now: float) -> list[EndedItem]:
        """The copies as ended items that were not run, at `now`, wall clock."""
        return [ended_item(self.items, index, now, 0, NOT_RUN) for index in range(len(self.items))]

    def as_row_says(self, index: int, change: RowChange) -> None:
        """Gives a copy the attempts and crashes of its row, not those that its record had when it was parked."""
        row, mapped = change.after, self.items.mapped
        self.items.part(index).rows[self.items.position(index)] = row
        mapped.attempts[index] = row.attempts + 1
        if row.crashes or (change.before is not None and is_suspect(change.before, row.epoch)):
            extra = mapped.extras.setdefault(index, Extra())
            extra.crashes, extra.alone = row.crashes, True


@dataclass(slots=True)
class StartStep:
    """A step of the start of a batch of copies, by their index in the batch.

    going   copies to push: they won their rows, or have none
    start   the rows to write
    append  copies whose row says PARKING: a new one goes to the delay service, with this row
    guard   copies that guard a detached item which runs on: they go to the delay service again
    over    copies that are over, since another copy ran or runs
    later   copies that may be adopted yet
    wait    copies that wait until a time, wall clock
    again   copies whose row somebody else wrote in between: they start anew
    """

    fence: int
    going: list[int] = field(default_factory=list)
    start: dict[int, RowChange] = field(default_factory=dict)
    append: dict[int, LedgerEntry] = field(default_factory=dict)
    guard: dict[int, LedgerEntry] = field(default_factory=dict)
    over: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    wait: dict[int, float] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)


class CopyStarts:
    """The copies of one tailer that are not handed out yet. `later`: seconds after which a copy that may be adopted yet
    asks again.

    Invariant: a copy that has a row is out only while its row says RUNNING, this epoch, and its flight's fence.

    starting  batches on their way to a push, in order
    ends      ends of adopted copies, until their rows are read
    found     number of copies that were read and wait for others of the same moment; `found_bytes`: their size
    """

    def __init__(
        self,
        later: float,
        ageing: RetryAgeing,
        departures: Departures,
        holding: Holding,
        seen: Surroundings,
        decided: Decisions,
    ) -> None:
        self.starting: list[Starting] = []
        self.ends: list[tuple[InheritedItem, Ended]] = []
        self.found = self.found_bytes = 0
        self._found: list[Items] = []
        self._later = later
        self._ageing = ageing
        self._departures = departures
        self._holding = holding
        self._seen = seen
        self._decided = decided

    def __len__(self) -> int:
        return self.found + sum([len(each.items) for each in self.starting]) + len(self.ends)

    def __iter__(self) -> Iterator[PartitionPosition]:
        here = [*self._found, *[each.items for each in self.starting], *[record.items for record, _ in self.ends]]
        return iter([(items.part(at), position) for items in here for at, position in items.places()])

    # Read.

    def read(self, items: Items) -> None:
        """Keeps copies of one function that were read, to start together with those of other functions."""
        self._ageing.seen(items.mapped.parked.values())
        self._found.append(items)
        self.found += len(items)
        self.found_bytes += items.size

    def gather(self) -> Items | None:
        """Takes the copies that were read, of all functions, as one batch; None: there are none."""
        found, self._found = self._found, []
        self.found = self.found_bytes = 0
        return None if not found else found[0] if len(found) == 1 else joined(found)

    # Start.

    def begin(self, items: Items, counts: Counter[Cell]) -> None:
        """Begins the start of copies whose credit is taken: their rows are written, then they are handed out."""
        self.starting.append(Starting(items, counts, self._seen.credit, self._seen.credit.clogs))
        self._decided.start = True

    def started(self, steps: Sequence[StartStep]) -> list[Push]:
        """Takes the steps of the first batches; returns the copies that are to be handed out."""
        together = self.starting[: len(steps)]
        del self.starting[: len(steps)]
        return [push for starting, step in zip(together, steps, strict=True) for push in self._apply(starting, step)]

    def _apply(self, starting: Starting, step: StartStep) -> Iterator[Push]:
        now = self._seen.monotonic
        if step.over or step.append or step.guard:
            not_run = starting.not_run(self._seen.wall)
            self._departures.skip([not_run[index] for index in step.over], Fate.FILTERED)
            for index, row in step.append.items():
                self._departures.append_again(not_run[index], row)
            for index, row in step.guard.items():
                self._departures.guard_again(not_run[index], row)
        self._hold(starting, step.again)
        self._hold(starting, step.later, now + self._later)
        for index, due in step.wait.items():
            self._hold(starting, [index], now + max(1e-6, due - self._seen.wall))
        for index in step.going:
            if index in step.start:
                starting.as_row_says(index, step.start[index])
        items, counts, credit, clogs = starting
        if credit is not self._seen.credit or not self._seen.may_push:
            credit.give(counts)
            self._hold(starting, step.going)  # another session: they start anew, from the rows that they have now
            return
        credit.clogged_since(clogs, counts)
        if len(step.going) < len(items):
            items = items.chosen(step.going)
            going = Counter(items.mapped.cells)
            credit.give(counts - going)
            counts = going
        if items:
            self._ageing.started(items.mapped.ids)
            yield Push(items.narrowed(), counts, step.fence)

    def _hold(self, starting: Starting, indexes: Iterable[int], not_before: float = 0.0) -> None:
        for index in indexes:
            self._holding.hold(starting.items, index, not_before)

    # How they end.

    def ended(self, out: HandOut, ends: Mapping[int, Ended]) -> None:
        """Notes copies that did not plainly succeed; those that did not fail either wait for their start again."""
        parked = out.place.mapped.parked
        self._ageing.seen([parked[index] for index, end in ends.items() if end.outcome in _AGAIN])

    def succeeded(self, out: HandOut, indexes: list[int]) -> None:
        """Has the row of each copy say that it succeeded, before the copy is settled."""
        ended = Ended(Outcome.SUCCESS)
        for index in indexes:
            self._departures.end(ended_of(out, index, ended), Fate.SUCCEEDED)
        out.release(indexes)

    def adopted_ended(self, record: InheritedItem, ended: Ended) -> None:
        """Notes the end of a copy that a former owner started; its row is to be read."""
        self.ends.append((record, ended))
        self._decided.start = True

    def settles(self, home: RowHome | None, row: LedgerEntry | None) -> tuple[InheritedItem, Ended, bool]:
        """The first adopted copy in `ends`, whose row was read, and whether it settles like a copy of this epoch. If
        not, its row went on without it, or is of another copy: the store was put back, and the place given again."""
        record, ended = self.ends.pop(0)
        runs = row is not None and row.place is LedgerPlace.RUNNING and row.fence == record.fence
        if runs and row is not None:
            record.items.partition.rows[record.items.position(0)] = row
        return record, ended, runs or home is None

    @property
    def home(self) -> RowHome | None:
        """The place of the row of the first adopted copy in `ends`; None: it has no row."""
        return home_of(self.ends[0][0].items.mapped.parked[0])
