"""The plan of a replay: from an operator's order to positions that are fixed from then on.

Only items that the live tailer has settled are run again, so that no item runs in both at the same time: none from the
live checkpoint on, and none below it that waits for a retry. The checkpoint is read before the ledger: an item that was
settled by then and has no waiting row never will have one (L13, L15).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...model.errors import InvalidRequest
from ...model.ledger import TERMINAL
from ...model.replay import Bound, Only, Replay, ReplayOrder, Stretch
from ...model.seek import END, START
from ...sdk.source import Rereader, SourceKind
from ...stores.checkpoints.checkpoints import Mark
from ..config import TailerConfig
from ..registry import Environment
from ..rules.audit_book import Book
from ..rules.replay import Chosen, Known, Span, choose, without
from ..rules.sparse_book import SparseBook
from ..seek.first_positions import first_from, first_kept

#: Rows of the ledger that are read at once.
ROWS = 1000
#: The most ranges of one replay. They are kept with it, about thirty bytes each.
MOST_SPANS = 20_000
#: The most dead letters that are looked at for one partition of a replay.
MOST_DIED = 100_000


def reader_of(kind: SourceKind, config: TailerConfig, environment: Environment) -> Rereader:
    """The reader that reads a tailer's source again; `environment` bears the live tailer's name. Raises InvalidRequest
    for a source that cannot be read again."""
    name = config.name
    if kind.family != "stream" or kind.name == "due":
        raise InvalidRequest(
            f"the tailer {name!r} reads {kind.name} items, which have no positions and are gone once they are done: "
            "redrive dead letters instead (tailrace dead redrive)"
        )
    build = kind.reader or (None if kind.shared or not kind.capabilities.replays else kind.build)
    reader: Rereader | None = None if build is None else build(config.options_for(kind), environment)
    if reader is None or not (reader.capabilities.replays and reader.capabilities.rereads):
        raise InvalidRequest(
            f"the source of the tailer {name!r} (kind {kind.name}) cannot read settled items again"
            + (kind.not_again and f": {kind.not_again}")
        )
    return reader


class Planning:
    """Plans replays of one tailer. The caller closes `reader`."""

    def __init__(self, config: TailerConfig, kind: SourceKind, reader: Rereader, environment: Environment) -> None:
        self._name = config.name
        self._kind = kind
        self._reader = reader
        self._stores = environment
        self._sparse = reader.capabilities.sparse

    async def plan(self, order: ReplayOrder, going: Sequence[Replay]) -> list[Stretch]:
        """The positions that an order asks for, partition by partition. `going` are the replays that are not over.
        Raises InvalidRequest with advice, and the errors of the source and the stores."""
        only = Only(order.only)
        if self._sparse and only is Only.UNSEEN:
            raise InvalidRequest(
                f"the positions of {self._name!r} are far apart, so those that it never saw are not known: give a "
                "range with another --only"
            )
        marks = await self._marks(order.partition)
        if order.partition is not None and order.partition not in marks:
            there = ", ".join(map(repr, sorted(marks))) or "none"
            raise InvalidRequest(
                f"the tailer {self._name!r} has read no partition {order.partition!r}; it has: {there}"
            )
        bounds = (order.begin, order.end)
        if not self._reader.capabilities.timed and any(bound.position is None and not bound.edge for bound in bounds):
            there = ", ".join(f"{name!r} is at {mark.position}" for name, mark in sorted(marks.items())[:3])
            raise InvalidRequest(
                f"the source of the tailer {self._name!r} (kind {self._kind.name}) has no times that rise with its "
                f'positions: name a POSITION, "start" or "end"' + (f" (its partition {there})" if there else "")
            )
        if len(marks) > 1 and any(bound.position is not None for bound in bounds):
            names = ", ".join(map(repr, sorted(marks)))
            raise InvalidRequest(
                f"the tailer {self._name!r} has {len(marks)} partitions ({names}): choose one with --partition"
            )
        found = [await self._stretch(order, only, name, marks[name]) for name in sorted(marks)]
        if (ranges := sum(len(stretch.spans) for stretch in found)) > MOST_SPANS:
            raise InvalidRequest(
                f"{ranges} ranges of positions are more than the {MOST_SPANS} of one replay: give a narrower range"
            )
        self._apart(found, going)
        return found

    async def _marks(self, partition: str | None) -> dict[str, Mark]:
        """The live checkpoints of the partitions that the source has."""
        there = await self._reader.ends()
        if self._kind.shared:  # each partition has a checkpoint of its own name
            wanted = there if partition is None else [name for name in there if name == partition]
            loads = {name: await self._stores.checkpoints.load(f"{self._name}/{name}") for name in wanted}
            marks = {name: load[name] for name, load in loads.items() if name in load}
        else:
            marks = await self._stores.checkpoints.load(self._name)
        return {name: mark for name, mark in marks.items() if name in there and partition in (None, name)}

    async def _stretch(self, order: ReplayOrder, only: Only, partition: str, mark: Mark) -> Stretch:
        where = f"the tailer {self._name!r}, partition {partition!r}"
        kept = await first_kept(self._reader, partition, 0, mark.position) if mark.position else 0
        first = await self._resolve(order.begin, partition, kept, mark.position, where)
        end = await self._resolve(order.end, partition, kept, mark.position, where)
        if first < kept and (order.begin.position is not None):
            raise InvalidRequest(
                f"{where}: its source has no records below {kept} any more, so none at {first}: begin at {kept}, "
                'or with "start"'
            )
        if first > end:
            raise InvalidRequest(f"{where}: --from is {first}, behind --to, which is {end}")
        chosen = await self._chosen(only, partition, first, end, mark)
        if chosen.unknown:
            what = {Only.FAILED: "failed", Only.DROPPED: "were dropped", Only.UNSEEN: "were never seen"}[only]
            raise InvalidRequest(
                f"{where}: the positions that {what} are not known one by one any more: "
                f"{'; '.join(chosen.unknown[:3])}. Narrow the range, or run all of it (--only all)"
            )
        waiting = await self._waiting(partition, first, end)
        spans = without(chosen.spans, waiting)
        counts = not (self._sparse and only is Only.ALL)
        items = sum(last - begin + 1 for begin, last in spans) if counts else -1
        left_out = _inside(chosen.spans, waiting)
        return Stretch(partition, first, end, tuple(spans), items if spans else 0, left_out)

    async def _resolve(self, bound: Bound, partition: str, kept: int, frontier: int, where: str) -> int:
        if bound.position is not None:
            if bound.position > frontier:
                raise InvalidRequest(
                    f"{where}: its checkpoint is at {frontier}, and items from there on are not settled: they may be "
                    f'running now. Name {frontier} at most, or "end"'
                )
            return bound.position
        if bound.edge == END:
            return frontier
        if bound.edge == START:
            return min(kept, frontier)
        return await first_from(self._reader, partition, kept, frontier, bound.time)

    async def _chosen(self, only: Only, partition: str, first: int, end: int, mark: Mark) -> Chosen:
        stores, name = self._stores, self._name
        if first >= end:
            return Chosen([], [])
        if only is Only.FAILED:
            died = await stores.dead_letters.died_at(name, partition, first, end, MOST_DIED + 1)
            if died is not None and len(died) > MOST_DIED:
                raise InvalidRequest(
                    f"the tailer {name!r}, partition {partition!r}: more than {MOST_DIED} items failed from {first} to "
                    f"{end - 1}: narrow the range, {died[-1]} would be an end"
                )
            return choose(only, first, end, Known(died=died))
        if only is Only.ALL:
            return choose(only, first, end, Known())
        book = book_of(mark, self._sparse)
        began, told = (0, 0) if book is None else (book.start, book.told)
        endings = await stores.checkpoints.endings(name_of(name, partition, self._kind), partition, first, end)
        drops = await stores.drops.within(name, partition, first, end - 1)
        return choose(only, first, end, Known(began, told, endings, drops))

    async def _waiting(self, partition: str, first: int, end: int) -> list[int]:
        """Positions whose item waits for a retry of the live tailer, or runs as a retry; rising."""
        found: list[int] = []
        last = first - 1
        while True:
            rows = await self._stores.ledger.list(self._name, ROWS, (partition, last))
            mine = [row.entry for row in rows if row.partition == partition and row.entry.position < end]
            found += [entry.position for entry in mine if entry.place not in TERMINAL]
            if len(rows) < ROWS or len(mine) < len(rows):
                return found
            last = mine[-1].position

    def _apart(self, found: Sequence[Stretch], going: Sequence[Replay]) -> None:
        """Raises InvalidRequest when a replay of `going` runs some of the positions: two never run the same item at
        once."""
        for replay in going:
            others: Mapping[str, Stretch] = {each.partition: each for each in replay.stretches}
            for stretch in found if replay.tailer == self._name else ():
                other = others.get(stretch.partition)
                if other is not None and _overlap(stretch.spans, other.spans):
                    raise InvalidRequest(
                        f"the replay {replay.number} is {replay.state} and runs some of these positions (partition "
                        f"{other.partition!r}, {other.first} to {other.end - 1}): wait for it, or cancel it first"
                    )


def name_of(tailer: str, partition: str, kind: SourceKind) -> str:
    """The name under which a partition's checkpoint is kept."""
    return f"{tailer}/{partition}" if kind.shared else tailer


def book_of(mark: Mark, sparse: bool) -> Book | None:
    """The book in a checkpoint; None: it has none yet."""
    if not mark.book:
        return None
    return SparseBook(mark.position, mark.book) if sparse else Book(mark.position, mark.book)


def _inside(spans: Sequence[Span], positions: Sequence[int]) -> int:
    """Number of the positions that are in the spans."""
    return sum(any(first <= position <= last for first, last in spans) for position in positions)


def _overlap(some: Sequence[Span], others: Sequence[Span]) -> bool:
    """Whether two lists of rising spans share a position."""
    place = 0
    for first, last in some:
        while place < len(others) and others[place][1] < first:
            place += 1
        if place < len(others) and others[place][0] <= last:
            return True
    return False
