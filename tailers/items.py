"""Items of a stream that are in memory: columns of the records that were read, and columns that the mapping made of
them.

An item travels from its read to its end as such columns and an index in them; there is one way to choose a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..model.due_times import evenly_spaced
from ..model.item_key import ItemKey
from ..model.workload import Extra, Flight, Owned
from ..sdk.source import StreamBatch
from .mapping.mapping import Mapped
from .partition import Partition


class Items(msgspec.Struct, frozen=True):
    """Columns of items. Invariant: `batch`, `mapped` and, where there are any, `parts` are of the same length.

    partition  the partition of all items; where they are of several, one of these
    batch      the records as they were read
    mapped     the same as the mapping made it
    parts      the partition of each item, where they are of several
    """

    partition: Partition
    batch: StreamBatch
    mapped: Mapped
    parts: Sequence[Partition] | None = None

    def __len__(self) -> int:
        return len(self.batch.positions)

    def part(self, index: int) -> Partition:
        """The partition of one item."""
        return self.partition if self.parts is None else self.parts[index]

    def position(self, index: int) -> int:
        """The position of one item in its partition."""
        return self.batch.positions[index]

    def key(self, index: int) -> ItemKey:
        """The identity of one item: its partition and position."""
        return self.part(index).name, self.batch.positions[index]

    def places(self) -> Iterable[tuple[int, int]]:
        """The index and position of each item."""
        return enumerate(self.batch.positions)

    @property
    def size(self) -> int:
        """The bytes of all payloads."""
        return sum(map(len, self.batch.payloads))

    def dues(self) -> Sequence[float]:
        """Due times of a few of the items, wall clock seconds: the time of the record, or the one set for the delay."""
        times, due = self.batch.times, self.mapped.due.get
        if not self.mapped.due:
            return evenly_spaced(times)
        return [due(index) or times[index] for index in evenly_spaced(range(len(times)))]

    def chosen(self, indexes: Sequence[int]) -> Items:
        """Some of the items, by rising index."""
        return self if len(indexes) == len(self.batch.positions) else self._copied(indexes)

    def narrowed(self) -> Items:
        """Returns these items, as items of one partition if `parts` are all the same."""
        parts = self.parts
        if parts is None or any(part is not parts[0] for part in parts):
            return self
        return Items(parts[0], self.batch, self.mapped)

    def one(self, index: int) -> Items:
        """One of the items, in columns of its own, which changes to the others do not touch."""
        return self._copied((index,))

    def _copied(self, indexes: Sequence[int]) -> Items:
        parts = None if self.parts is None else [self.parts[index] for index in indexes]
        return Items(self.partition, chosen(self.batch, indexes), self.mapped.chosen(indexes), parts)

    def flight(self, number: int, fence: int, owned: Owned, wants_result: bool) -> Flight:
        """The items as one flight, with the ownership under which they go out."""
        mapped = self.mapped
        return Flight(
            number=number,
            fence=fence,
            kinds=mapped.kinds,
            ids=mapped.ids,
            payloads=self.batch.payloads,
            attempts=mapped.attempts,
            extras=mapped.extras,
            wants_result=wants_result,
            owned=owned,
            dues=self.dues(),
        )

    def hand_out(self) -> None:
        """Notes that the items are handed out; those that were out before and were lost go before others."""
        positions = self.batch.positions
        if self.parts is None:
            self._go_first(self.partition, enumerate(positions))
            self.partition.hand_out(positions)
            return
        for index, (part, position) in enumerate(zip(self.parts, positions, strict=True)):
            self._go_first(part, ((index, position),))
            part.hand_out((position,))

    def _go_first(self, part: Partition, items: Iterable[tuple[int, int]]) -> None:
        for index, position in items if part.again else ():
            if part.goes_first(position):
                self.mapped.extras.setdefault(index, Extra()).again = True


def joined(several: Sequence[Items]) -> Items:
    """Items of several partitions, one after the other."""
    batch, mapped = StreamBatch("", [], [], [], [], []), Mapped([], [], [], [], [])
    parts: list[Partition] = []
    for each in several:
        parts += [each.partition] * len(each)
        mapped.join(each.mapped)
        batch.positions += each.batch.positions
        batch.times += each.batch.times
        batch.keys += each.batch.keys
        batch.headers += each.batch.headers
        batch.payloads += each.batch.payloads
    return Items(several[0].partition, batch, mapped, parts)


def chosen(batch: StreamBatch, indexes: Sequence[int]) -> StreamBatch:
    """Some records of a batch."""
    return StreamBatch(
        batch.partition,
        [batch.positions[index] for index in indexes],
        [batch.times[index] for index in indexes],
        [batch.keys[index] for index in indexes],
        [batch.headers[index] for index in indexes],
        [batch.payloads[index] for index in indexes],
        refused={new: batch.refused[old] for new, old in enumerate(indexes) if old in batch.refused},
    )
