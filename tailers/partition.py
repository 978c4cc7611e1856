"""The state of one partition in a stream pump: its frontier, its held items, and the history of troubled ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ..model.audit import Fate
from ..model.dead_letter import DeadLetter
from ..model.demand import Cell
from ..model.ledger import LedgerEntry
from ..model.tenant_key import plain_key
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

#: Up to so many empty positions are passed one by one; a larger hole is passed as a range, without memory.
LARGE_HOLE = 4096
#: Up to so many positions are settled one by one; among more it pays to look for runs.
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
    or on its way into a store; so is every position in `redriven`, all of which are settled. `kept`, `troubles` and
    `hand_backs` name only such positions.
    `book` hears what `frontier` hears.

    window  bounds how much is read of it; partitions may share one
    deadlines  of held items that expire
    rows    the ledger's rows of items that are not settled, as last read or written
    detached  the rows of settled items that still run, or are on their way into a store since they ran
    redriven  the dead letters of items that have another life: each runs, or waits, as its letter says
    holders  the tailer's partitions that hold something, this one too while it does (each look tidies it)
    handed_out  the end of all positions that were ever handed out
    again   how often in a row the item of a position was lost: it goes before others
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
        "redriven",
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
        self.redriven: dict[int, DeadLetter] = {}
        self.rowed: set[int] = set()
        self.handed_out = mark.handed_out
        self._changes = 1  # counted, so that a partition to which nothing happened costs a checkpoint nothing
        self._saved = 0  # the number of changes in the last checkpoint
        self._marked: tuple[int, Mark | None] = (0, None)
        self._committed = mark

    def read(self, batch: StreamBatch, gap: Fate) -> list[int] | None:
        """Notes a batch that was just read; positions that it leaves out get the fate `gap`. Returns the indexes of the
        records to run, None for all."""
        self._changes += 1
        if gap != Fate.LOST and batch.positions and self._hole(batch.positions[0]) > LARGE_HOLE:
            self.skip(batch.positions[0] - 1, gap)
        run = self.frontier.read(batch.positions, batch.absent)
        self.book.read(batch.positions, batch.absent, gap)
        if batch.through > self.frontier.end:
            self.skip(batch.through - 1, Fate.ABSENT)
        return run

    def _hole(self, position: int) -> int:
        """Number of empty positions between those read before and this one; 0 where positions are far apart."""
        return 0 if isinstance(self.book, SparseBook) else position - self.frontier.end

    def skip(self, last: int, fate: Fate = Fate.LOST, items: int = 0) -> None:
        """Ends all positions up to `last` that were never read and had not ended, with a fate. `items`: their number,
        where positions do not say it."""
        self._changes += 1
        if isinstance(self.book, SparseBook):
            self.frontier.skip(last)
            self.book.skip(last, fate, max(1, items))
            return
        known = min(last, self.frontier.known - 1)
        for stop in (known, last):  # known positions take memory; those behind them take none, however many
            self.advance()
            self.frontier.skip(stop)
            self.book.skip(stop, fate)

    def settle(self, positions: Sequence[int], fate: Fate) -> None:
        """Settles positions, whose items are done or durably elsewhere, with a fate. `positions` rise, as `ranges`
        asks."""
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
        self._over(positions)

    def redrive(self, letters: Iterable[DeadLetter]) -> None:
        """Takes items that are settled and have another life, in which attempts begin anew."""
        for letter in letters:
            self.redriven[letter.position] = letter
            self.troubles[letter.position] = History()

    def end_redriven(self, positions: Sequence[int]) -> list[int]:
        """Ends the redriven items among these positions; returns the other positions."""
        mine = [position for position in positions if self.redriven.pop(position, None) is not None]
        if not mine:
            return [*positions]
        self._over(mine)
        return [position for position in positions if position not in mine]

    def _over(self, positions: Sequence[int]) -> None:
        """Forgets items that are over, and lets those go that waited for them."""
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
        """Whether any of these positions has a history or a row. Few ever have, so this is quick for most batches."""
        return bool(self.troubles and _among(self.troubles, positions)) or self.has_rows(positions)

    def has_rows(self, positions: Sequence[int]) -> bool:
        """Whether the ledger has a row of any of these positions, which rise."""
        return bool(self.rows and _among(self.rows, positions))

    def row(self, position: int) -> LedgerEntry | None:
        """The ledger's row of an item, as last read or written; None: it has none."""
        row = self.rows.get(position)
        return row if row is not None or not self.detached else self.detached.get(position)

    def is_detached(self, position: int) -> bool:
        """Whether the row of an item says that it is detached; it may not be settled yet."""
        row = self.row(position)
        return row is not None and row.is_detached

    def hand_out(self, positions: Sequence[int]) -> None:
        """Notes the positions that are handed out."""
        if positions[-1] >= self.handed_out:
            self.handed_out = positions[-1] + 1
            self._changes += 1

    def advance(self) -> None:
        """Moves the frontier over settled positions, and counts them in the book."""
        if self.frontier.advance():
            self._changes += 1
        self.book.passed(self.frontier.position)

    def mark(self) -> Mark | None:
        """The mark for a checkpoint now; None when the last checkpoint has it already."""
        if self._changes == self._saved:
            return None
        changes = self._changes  # moves of the frontier from here on count as news for the next one
        self.advance()
        mark = Mark(self.frontier.position, self.frontier.encode(), self.handed_out, self.book.encode())
        if mark == self._committed:
            self._saved = changes
            return None
        mark = mark._replace(endings=tuple(self.book.endings))
        self._marked = changes, mark
        return mark

    def committed(self, mark: Mark) -> bool:
        """Notes that a checkpoint with this mark is durable. Returns whether its position moved."""
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
        """Takes rows as the ledger has them."""
        committed, passed = self._committed.position, self.frontier.position
        by_position = {entry.position: entry for entry in entries}
        self.rowed.update([position for position in by_position if position >= committed])
        self.rows.update({position: row for position, row in by_position.items() if position >= passed})

    def swept(self, position: int) -> None:
        """Notes that the ledger was told how far the checkpoint is: it drops the rows below."""
        self.rowed = {rowed for rowed in self.rowed if rowed >= position}

    def returned(self, position: int, settlement: Settlement) -> None:
        """Takes back an item that was out and will be handed out again."""
        self.troubles[position] = History(settlement.failed + 1, settlement.crashes, settlement.throttles)
        if settlement.action is Action.AGAIN:
            self.lost(position)

    def lost(self, position: int) -> None:
        """Notes that an item that was out was lost."""
        self.again[position] = self.again.get(position, 0) + 1

    def goes_first(self, position: int) -> bool:
        """Whether an item goes before others, because it had its turn and was lost."""
        return 0 < self.again.get(position, 0) <= FIRST_AGAIN

    def hold(
        self, kind: Kind, position: int, not_before: float = 0.0, expires_at: float = 0.0, *, runs: bool = False
    ) -> None:
        """Holds an item by its position; see rules/held.py. `runs`: a former run of it may go on until `not_before`."""
        self.holders[self] = None
        ranked = self.order is not None and self.order.ranks is not None
        if self.order is not None and ranked:
            kind = self.order.lifted(position, kind)
        movable = ranked or expires_at > 0
        self.held.hold(kind, (position,), not_before, first=self.goes_first(position), movable=movable)
        if expires_at > 0:
            (self.deadlines.defer if runs else self.deadlines.keep)(position, expires_at)

    def ripen(self, now: float) -> None:
        """Has held items go whose time has come (monotonic)."""
        self.deadlines.resumed(self.held.ripen(now))

    def take(self, cell: Cell, count: int, is_closed: Callable[[Kind], bool]) -> list[int]:
        """Takes up to `count` held positions of a cell; see rules/held.py."""
        taken = self.held.take(cell, count, is_closed)
        if len(self.deadlines):
            self.deadlines.forget(taken)
        return taken

    def expire(self, now: float, most: int) -> list[int]:
        """Takes up to `most` held positions that have expired at `now`, wall clock."""
        return self.held.withdraw(self.deadlines.over(now, most))

    def lift(self) -> bool:
        """Moves held heads of keys that have become more urgent. Returns whether there were any."""
        risen = [] if self.order is None else self.order.risen()
        for head in risen:
            self.held.move(head, partial(self._lifted, head))
        return bool(risen)

    def _lifted(self, head: int, kind: Kind) -> Kind:
        return kind if self.order is None else self.order.lifted(head, kind)

    @property
    def waiting(self) -> int:
        """Number of items that are held, or wait behind others of their key."""
        held = len(self.held)
        return held if self.order is None else held + self.order.waiting

    def held_positions(self) -> list[int]:
        """The positions of items that are held, or wait behind others of their key."""
        return [*self.held.positions(), *(() if self.order is None else self.order.positions())]

    def stuck(self, positions: Sequence[int]) -> None:
        """Notes that items at these positions may not run for a while, nor those that wait behind them."""
        if self.order is not None:
            self.order.stuck(positions)

    def rename(self, new_kind: Callable[[Kind], Kind]) -> None:
        """Gives each held item the kind that `new_kind` returns for its present one."""
        self.held.rename(new_kind)
        if self.order is not None:
            self.order.rename(new_kind)

    def why_waiting(self) -> str:
        """The item behind which most items of a key wait, in words; empty when none waits."""
        most = None if self.order is None else self.order.longest()
        if most is None:
            return ""
        key, head, _ = most
        trouble = self.troubles.get(head)
        tried = f" (attempt {trouble.attempt})" if trouble is not None and trouble.attempt > 1 else ""
        which = f"of key {plain_key(key)!r}" if key else "before them"
        return f"behind the item at {head} {which}{tried}"

    def take_kept(self, positions: Iterable[int]) -> tuple[StreamBatch, list[int]]:
        """Takes the items among `positions` whose payload is still in memory; and the positions of the others. Both
        rise."""
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
    """The positions, of these rising ones, that are in `known`. `known` has few, mostly elsewhere: failed items lie
    behind those that are read."""
    if not positions or len(positions) <= len(known):
        return [position for position in positions if position in known]
    first, last = positions[0], positions[-1]
    near = [position for position in known if first <= position <= last]
    return set(near).intersection(positions) if near else near
