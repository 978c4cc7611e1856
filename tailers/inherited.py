"""Items that a former owner of the source handed out and that still run: adopted, not run again (LEASES L12).

The scheduler names them by position, and their outcomes come to this session. Their records are read with all others,
since what failed is settled with its payload; whichever comes first, record or outcome, waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..sdk.model.workload import INDEX_BITS, Ended, Outcomes, ref
from ..sdk.source import StreamBatch
from .partition import Partition, chosen
from .session import Inheritance

#: A position in a part of the source.
Spot = tuple[str, int]


class Record(NamedTuple):
    """A record that was read: a batch of one, and the fence of the attempt that runs."""

    part: Partition
    batch: StreamBatch
    fence: int


class Inherited:
    """Invariant: an adopted item has no outcome (it is in `running`), or no record yet, or is settled.

    `settle` is called when both are there; `again` with a record whose attempt was lost with its session, and the
    monotonic time before which it may not be handed out.
    """

    def __init__(self, settle: Callable[[Record, Ended], None], again: Callable[[Record, float], None]) -> None:
        self._settle = settle
        self._again = again
        self.running: set[int] = set()
        self._unread: dict[Spot, int] = {}
        self._fences: dict[int, int] = {}  # of flights
        self._records: dict[int, Record] = {}
        self._ends: dict[int, Ended] = {}
        self._lost: dict[Spot, float] = {}

    def accept(self, flights: Iterable[Inheritance]) -> None:
        """Exactly these are adopted."""
        self.clear()
        for number, fence, part, positions in flights:
            self._fences[number] = fence
            for index, position in positions.items():
                self._unread[part, position] = ref(number, index)
        self.running.update(self._unread.values())

    def clear(self) -> None:
        """Nothing is adopted."""
        for each in (self.running, self._unread, self._fences, self._records, self._ends, self._lost):
            each.clear()

    def __len__(self) -> int:
        """How many items were read and have no outcome."""
        return len(self._records)

    @property
    def pending(self) -> bool:
        """Whether something that was adopted is not settled yet."""
        return bool(self.running or self._unread or self._records or self._ends)

    def positions(self, part: Partition) -> list[int]:
        """The positions of those, in one partition."""
        return [record.batch.positions[0] for record in self._records.values() if record.part is part]

    @property
    def flights(self) -> list[int]:
        """Those that have an item without an outcome; to be named in renewals."""
        return sorted({number >> INDEX_BITS for number in self.running})

    def took(self, part: Partition, batch: StreamBatch) -> StreamBatch:
        """A batch read for the first time; returns what of it is to be pushed."""
        if not (self._unread or self._lost):
            return batch
        going = []
        for index, position in enumerate(batch.positions):
            spot = (part.name, position)
            number = self._unread.pop(spot, None)
            not_before = self._lost.pop(spot, None)
            if number is not None:
                record = Record(part, chosen(batch, [index]), self._fences[number >> INDEX_BITS])
                ended = self._ends.pop(number, None)
                if ended is None:
                    self._records[number] = record
                else:
                    self._settle(record, ended)
            elif not_before is not None:
                self._again(Record(part, chosen(batch, [index]), 0), not_before)
            else:
                going.append(index)
        return batch if len(going) == len(batch.positions) else chosen(batch, going)

    def came(self, outcomes: Outcomes) -> None:
        """Outcomes of this session; those of other items are not looked at."""
        if not self.running:
            return
        mine = [(number, Ended(1)) for number in outcomes.succeeded if number in self.running]
        mine += [(number, ended) for number, ended in outcomes.ended.items() if number in self.running]
        for number, ended in mine:
            self.running.discard(number)
            record = self._records.pop(number, None)
            if record is None:
                self._ends[number] = ended
            else:
                self._settle(record, ended)

    def lost(self, not_before: float) -> None:
        """The session is gone for good: what has no outcome is handed out anew, not before then."""
        spots = {number: spot for spot, number in self._unread.items()}
        for number in self.running:
            record = self._records.pop(number, None)
            if record is None:
                spot = spots[number]
                del self._unread[spot]
                self._lost[spot] = not_before
            else:
                self._again(record, not_before)
        self.running.clear()
