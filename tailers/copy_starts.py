"""Starts of copies that came due: from the read to the push, which waits for the compare-and-set of their rows. Pure.

What is read of many functions goes together, as far as there is credit. The shell (pumps/copy_starter.py) writes the
rows of some batches at once, and tells what became of each copy: those that won their rows are pushed under the fence
that these have, the others are over, as another copy ran, or runs. An adopted copy settles like one of this epoch, if
its row says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..model.audit import Fate
from ..model.demand import Cell
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

#: Ends of items that did not run, or of which it is not known: they come again.
_AGAIN = (Outcome.HELD, Outcome.LOST, Outcome.THROTTLED)


class Starting(NamedTuple):
    """Copies on their way to a push. Their credit is taken, with the session of that time."""

    items: Items
    counts: Counter[Cell]
    credit: Credit

    def not_run(self, now: float) -> list[EndedItem]:
        """Each of them as one that was not run, at `now`, wall clock."""
        return [ended_item(self.items, index, now, 0, NOT_RUN) for index in range(len(self.items))]

    def as_row_says(self, index: int, change: RowChange) -> None:
        """A copy starts with what its row says, not with what its record said when it was parked."""
        row, mapped = change.after, self.items.mapped
        self.items.part(index).rows[self.items.position(index)] = row
        mapped.attempts[index] = row.attempts + 1
        if row.crashes or (change.before is not None and is_suspect(change.before, row.epoch)):
            extra = mapped.extras.setdefault(index, Extra())
            extra.crashes, extra.alone = row.crashes, True


@dataclass(slots=True)
class StartStep:
    """A step of the start of a batch of copies, by index: `start` are the rows to write, of which those in `going` were
    won (beside copies without a row) and for those in `again` another write came between; `later` may be adopted, and
    `wait` are to wait until a time, wall clock."""

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
    """The copies of one tailer that are not handed out yet. `later`: seconds after which one that may be adopted asks
    again.

    Invariant: a copy that has a row is out only while its row says RUNNING, this epoch, and its flight's fence.

    starting  on their way to a push, the first ones first
    ends      of what was adopted, until their rows are read
    found     how many were read, and wait for what is read in the same moment, and of how many `found_bytes`
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
        """What was read of one function goes with what is read of the others."""
        self._ageing.seen(items.mapped.parked.values())
        self._found.append(items)
        self.found += len(items)
        self.found_bytes += items.size

    def gather(self) -> Items | None:
        """What was read of many functions, as one; None: nothing was."""
        found, self._found = self._found, []
        self.found = self.found_bytes = 0
        return None if not found else found[0] if len(found) == 1 else joined(found)

    # Start.

    def begin(self, items: Items, counts: Counter[Cell]) -> None:
        """Their credit is taken; they start by their rows, and are handed out then."""
        self.starting.append(Starting(items, counts, self._seen.credit))
        self._decided.start = True

    def started(self, steps: Sequence[StartStep]) -> list[Push]:
        """The first ones took these steps; returns those that are to be handed out."""
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
        items, counts, credit = starting
        if credit is not self._seen.credit or not self._seen.may_push:
            credit.give(counts)
            self._hold(starting, step.going)  # another session: they start anew, from the rows that they have now
            return
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
        """Did not plainly succeed; what did not fail either waits again."""
        parked = out.place.mapped.parked
        self._ageing.seen([parked[index] for index, end in ends.items() if end.outcome in _AGAIN])

    def succeeded(self, out: HandOut, indexes: list[int]) -> None:
        """Each row says so before its copy is settled."""
        ended = Ended(Outcome.SUCCESS)
        for index in indexes:
            self._departures.end(ended_of(out, index, ended), Fate.SUCCEEDED)
        out.release(indexes)

    def adopted_ended(self, record: InheritedItem, ended: Ended) -> None:
        """A copy that a former owner started has ended; its row is to be read."""
        self.ends.append((record, ended))
        self._decided.start = True

    def settles(self, home: RowHome | None, row: LedgerEntry | None) -> tuple[InheritedItem, Ended, bool]:
        """The first one of those, whose row was read, and whether it settles as one of this epoch. Else its row went on
        without it, or this is another copy: the store was put back, and its place given again."""
        record, ended = self.ends.pop(0)
        runs = row is not None and row.place is LedgerPlace.RUNNING and row.fence == record.fence
        if runs and row is not None:
            record.items.partition.rows[record.items.position(0)] = row
        return record, ended, runs or home is None

    @property
    def home(self) -> RowHome | None:
        """Where the row of the first one of those is; None: it has none."""
        return home_of(self.ends[0][0].items.mapped.parked[0])
