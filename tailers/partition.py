"""The state of one partition in a stream pump: its frontier, what is held, and what is known of troubled items."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ..model.audit import Fate
from ..model.demand import Cell
from ..model.ledger import LedgerEntry
from ..model.workload import Headers, Kind
from ..sdk.source import StreamBatch
from ..stores.checkpoints.checkpoints import Mark
from .rules.audit_book import Book
from .rules.deadlines import Deadlines
from .rules.frontier import Frontier, decode
from .rules.hand_back import HandBacks
from .rules.held import HeldPositions
from .rules.order import Order
from .rules.position_ranges import ranges
from .rules.settlement import FIRST_AGAIN, Action, History, Settlement
from .rules.sparse_book import SparseBook
from .rules.sparse_frontier import SparseFrontier
from .rules.window import Window

#: Positions that hold nothing are passed one by one up to so many at once; more take no memory.
LARGE_HOLE = 4096
#: So many positions settle one by one; of more it pays to look for runs.
FEW = 32


class Kept(NamedTuple):
    """A held item whose payload is still in memory."""

    time: float
    key: str
    headers: Headers
    payload: bytes


class Partition:
    """The state of one partition.

    Invariants: every position in [frontier.position, frontier.end) that is not settled is in exactly one place: in
    flight, in `held`, taken from it to be read again, waiting in a line of `order` (None: nothing waits for another),
    or on its way into a store. `kept`, `troubles` and `hand_backs` name only such positions.
    `book` hears what `frontier` hears.

    window  bounds what is read of it; partitions may share one
    deadlines  of what is held and expires
    rows    what the ledger says of items that are not settled, as it was last read or written
    detached  the rows of those that are settled and still run, or are on their way from there into a store
    holders  partitions of the tailer that hold something, this one too while it does (whoever looks tidies it)
    handed_out  the end of what was ever handed out
    again   how often the item of a position was lost in a row: it goes before others
    rowed   positions with a row that no checkpoint has passed yet
    """

    __slots__ = (
        "_changes",
        "_committed",
        "_marked",
        "_saved",
        "again",
        "book",
        "deadlines",
        "detached",
        "frontier",
        "hand_backs",
        "handed_out",
        "held",
        "holders",
        "kept",
        "name",
        "order",
        "rowed",
        "rows",
        "troubles",
        "window",
    )

    def __init__(self, name: str, mark: Mark, window: Window | None = None, sparse: bool = False) -> None:
        self.name = name
        self.window = window or Window()
        if sparse:
            self.frontier: Frontier = SparseFrontier(mark.position, mark.ahead)
            self.book: Book = SparseBook(mark.position, mark.book)
        else:
            self.frontier = Frontier(mark.position, mark.ahead)
            self.book = Book(mark.position, mark.book, b"" if mark.book else decode(mark.ahead))
        self.held = HeldPositions()
        self.holders: dict[Partition, None] = {}
        self.deadlines = Deadlines()
        self.kept: dict[int, Kept] = {}
        self.troubles: dict[int, History] = {}
        self.again: dict[int, int] = {}
        self.hand_backs: HandBacks[int] = HandBacks()
        self.order: Order | None = None
        self.rows: dict[int, LedgerEntry] = {}
        self.detached: dict[int, LedgerEntry] = {}
        self.rowed: set[int] = set()
        self.handed_out = mark.handed_out
        self._changes = 1  # counted, so that a partition to which nothing happened costs a checkpoint nothing
        self._saved = 0  # how many of them the last checkpoint has
        self._marked: tuple[int, Mark | None] = (0, None)
        self._committed = mark

    def read(self, batch: StreamBatch, gap: Fate) -> list[int] | None:
        """Takes note of what was just read; positions that did not come are `gap`. Returns the indexes that are to be
        run, None for all."""
        self._changes += 1
        if gap != Fate.LOST and batch.positions and self._hole(batch.positions[0]) > LARGE_HOLE:
            self.skip(batch.positions[0] - 1, gap)
        run = self.frontier.read(batch.positions, batch.absent)
        self.book.read(batch.positions, batch.absent, gap)
        if batch.through > self.frontier.end:
            self.skip(batch.through - 1, Fate.ABSENT)
        return run

    def _hole(self, position: int) -> int:
        """How many positions that nobody reads come before this one; where they are far apart, none counts."""
        return 0 if isinstance(self.book, SparseBook) else position - self.frontier.end

    def skip(self, last: int, fate: Fate = Fate.LOST, items: int = 0) -> None:
        """What was never read up to `last`, and had not ended, ended so; `items`: how many that is, where positions do
        not say."""
        self._changes += 1
        if isinstance(self.book, SparseBook):
            self.frontier.skip(last)
            self.book.skip(last, fate, max(1, items))
            return
        known = min(last, self.frontier.known - 1)
        for stop in (known, last):  # what is known of takes memory, what lies behind it none, however much it is
            self.advance()
            self.frontier.skip(stop)
            self.book.skip(stop, fate)

    def settle(self, positions: Sequence[int], fate: Fate) -> None:
        """Settles what is done or durably elsewhere: how, is `fate`. `positions` rise, as `ranges` asks."""
        if not positions:
            return
        self._changes += 1
        if len(positions) <= FEW or isinstance(self.book, SparseBook):
            self.book.settle(positions, fate)
            self.frontier.settle(positions)
        else:
            for first, last in ranges(positions):
                self.book.settle_range(first, last, fate)
                self.frontier.settle_range(first, last)
        for known in (self.troubles, self.rows):
            for position in _among(known, positions) if known else ():
                known.pop(position, None)
        if self.again and not self.again.keys().isdisjoint(positions):
            for position in positions:
                self.again.pop(position, None)
        if self.hand_backs:
            self.hand_backs.over(positions)
        if self.order is not None:
            for head in self.order.over(positions):
                self.hold(head.kind, head.position, 0.0, head.expires_at)

    def is_troubled(self, positions: Sequence[int]) -> bool:
        """Whether any of these has a history or a row. Few ever have, so most batches are only looked at."""
        return bool(self.troubles and _among(self.troubles, positions)) or self.has_rows(positions)

    def has_rows(self, positions: Sequence[int]) -> bool:
        """Whether the ledger has a row of any of these, which rise."""
        return bool(self.rows and _among(self.rows, positions))

    def row(self, position: int) -> LedgerEntry | None:
        """What the ledger says of an item, as it was last read or written."""
        row = self.rows.get(position)
        return row if row is not None or not self.detached else self.detached.get(position)

    def is_detached(self, position: int) -> bool:
        """Whether the row of an item says that it is detached; it may not be settled yet."""
        row = self.row(position)
        return row is not None and row.is_detached

    def hand_out(self, positions: Sequence[int]) -> None:
        """Notes what is handed out."""
        if positions[-1] >= self.handed_out:
            self.handed_out = positions[-1] + 1
            self._changes += 1

    def advance(self) -> None:
        """Moves the frontier over what is settled, and counts it in the book."""
        if self.frontier.advance():
            self._changes += 1
        self.book.passed(self.frontier.position)

    def mark(self) -> Mark | None:
        """What a checkpoint should say now; None when the last one says so already."""
        if self._changes == self._saved:
            return None
        changes = self._changes  # what the frontier does now is looked at once more
        self.advance()
        mark = Mark(self.frontier.position, self.frontier.encode(), self.handed_out, self.book.encode())
        if mark == self._committed:
            self._saved = changes
            return None
        mark = mark._replace(endings=tuple(self.book.endings))
        self._marked = changes, mark
        return mark

    def committed(self, mark: Mark) -> bool:
        """A checkpoint with this mark is durable; whether it passed anything."""
        changes, marked = self._marked
        passed = mark.position > self._committed.position
        if marked is mark:
            self._saved = changes
        self._committed = mark._replace(endings=())
        self.book.kept(mark.position)
        return passed

    @property
    def checkpoint(self) -> int:
        """The position of the last checkpoint that is durable."""
        return self._committed.position

    def know(self, entries: Iterable[LedgerEntry]) -> None:
        """Rows as the ledger has them."""
        committed, passed = self._committed.position, self.frontier.position
        by_position = {entry.position: entry for entry in entries}
        self.rowed.update([position for position in by_position if position >= committed])
        self.rows.update({position: row for position, row in by_position.items() if position >= passed})

    def swept(self, position: int) -> None:
        """The ledger knows that the checkpoint has passed everything below."""
        self.rowed = {rowed for rowed in self.rowed if rowed >= position}

    def returned(self, position: int, settlement: Settlement) -> None:
        """An item that was out comes back and will be handed out again."""
        self.troubles[position] = History(settlement.failed + 1, settlement.crashes, settlement.throttles)
        if settlement.action is Action.AGAIN:
            self.lost(position)

    def lost(self, position: int) -> None:
        """An item that was out was lost."""
        self.again[position] = self.again.get(position, 0) + 1

    def goes_first(self, position: int) -> bool:
        """Whether an item goes before others: it had its turn, and lost it."""
        return 0 < self.again.get(position, 0) <= FIRST_AGAIN

    def hold(self, kind: Kind, position: int, not_before: float = 0.0, expires_at: float = 0.0) -> None:
        """Keeps an item by its position; see rules/held.py."""
        self.holders[self] = None
        ranked = self.order is not None and self.order.ranks is not None
        if self.order is not None and ranked:
            kind = self.order.lifted(position, kind)
        movable = ranked or expires_at > 0
        self.held.hold(kind, (position,), not_before, first=self.goes_first(position), movable=movable)
        if expires_at > 0:
            self.deadlines.keep(position, expires_at)

    def take(self, cell: Cell, count: int, is_closed: Callable[[Kind], bool]) -> list[int]:
        """Up to `count` held positions of a cell; see rules/held.py."""
        taken = self.held.take(cell, count, is_closed)
        if len(self.deadlines):
            self.deadlines.forget(taken)
        return taken

    def expire(self, now: float, most: int) -> list[int]:
        """Up to so many held positions that expired by now, wall clock; they are no longer held."""
        return self.held.withdraw(self.deadlines.over(now, most))

    def lift(self) -> bool:
        """Held heads go as early as their keys have become urgent; whether there were any such keys."""
        risen = [] if self.order is None else self.order.risen()
        for head in risen:
            self.held.move(head, partial(self._lifted, head))
        return bool(risen)

    def _lifted(self, head: int, kind: Kind) -> Kind:
        return kind if self.order is None else self.order.lifted(head, kind)

    @property
    def waiting(self) -> int:
        """How many items are held, and how many wait behind those of their key."""
        held = len(self.held)
        return held if self.order is None else held + self.order.waiting

    def held_positions(self) -> list[int]:
        """The positions of what is held, and of what waits behind others of its key."""
        return [*self.held.positions(), *(() if self.order is None else self.order.positions())]

    def stuck(self, positions: Sequence[int]) -> None:
        """What waits behind these, if anything, waits long."""
        if self.order is not None:
            self.order.stuck(positions)

    def rename(self, new_kind: Callable[[Kind], Kind]) -> None:
        """Everything held has the kind that `new_kind` makes of its kind."""
        self.held.rename(new_kind)
        if self.order is not None:
            self.order.rename(new_kind)

    def why_waiting(self) -> str:
        """What most of those wait for that wait behind others of their key; empty when nothing does."""
        most = None if self.order is None else self.order.longest()
        if most is None:
            return ""
        key, head, _ = most
        trouble = self.troubles.get(head)
        tried = f" (attempt {trouble.attempt})" if trouble is not None and trouble.attempt > 1 else ""
        which = f"of key {key!r}" if key else "before them"
        return f"behind the item at {head} {which}{tried}"

    def take_kept(self, positions: Iterable[int]) -> tuple[StreamBatch, list[int]]:
        """The items among `positions` whose payload is still here, and the positions of the others; both rising."""
        batch = StreamBatch(self.name, [], [], [], [], [])
        missing = []
        for position in sorted(positions):
            kept = self.kept.pop(position, None)
            if kept is None:
                missing.append(position)
                continue
            batch.positions.append(position)
            batch.times.append(kept.time)
            batch.keys.append(kept.key)
            batch.headers.append(kept.headers)
            batch.payloads.append(kept.payload)
        return batch, missing


def _among(known: Mapping[int, object], positions: Sequence[int]) -> Collection[int]:
    """Which of these positions, which rise, are among what is known. That is few, and mostly elsewhere: what fails lies
    behind what is read."""
    if not positions or len(positions) <= len(known):
        return [position for position in positions if position in known]
    first, last = positions[0], positions[-1]
    near = [position for position in known if first <= position <= last]
    return set(near).intersection(positions) if near else near
