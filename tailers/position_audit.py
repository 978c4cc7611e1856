"""The audit of a running stream tailer: how each position ended, or where its item is now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ..model.audit import HELD, IN_FLIGHT, Audit, Fate
from ..model.outcome import Outcome
from .hand_out import HandOut
from .holding import Holding
from .partition import Partition
from .rules.audit_sum import audit_of
from .takeover.inherited import Inherited

#: The fate of an item that is over without having failed, by its outcome.
FATES = {
    Outcome.SUCCESS: Fate.SUCCEEDED,
    Outcome.DROPPED: Fate.DROPPED,
    Outcome.EXPIRED: Fate.EXPIRED,
    Outcome.CANCELLED: Fate.CANCELLED,
}


class PositionAudit:
    """Counts and lists positions from state that other classes keep, and changes nothing. The caller passes the items
    that are on their way to a worker or into a store (`leaving`), or their number (`going`)."""

    def __init__(
        self,
        tailer: str,
        partitions: Mapping[str, Partition],
        holding: Holding,
        inherited: Inherited,
    ) -> None:
        self._tailer = tailer
        self._partitions = partitions
        self._holding = holding
        self._inherited = inherited

    def audits(
        self,
        flights: Mapping[int, HandOut],
        leaving: Iterable[tuple[Partition, int]],
        partition: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> list[Audit]:
        """The audit of each partition, of one, or of a range of positions in one. `flights`: the flights that are
        out."""
        found, gone = [], list(leaving)
        for name in sorted(self._partitions if partition is None else {partition}.intersection(self._partitions)):
            part = self._partitions[name]
            part.advance()
            held = [position for position in self._holding.positions(part) if position not in part.redriven]
            places = {IN_FLIGHT: self._in_flight(part, flights, gone), HELD: held}
            found.append(audit_of(self._tailer, name, part.book, places, span))
        return found

    def unaccounted(self, in_flight: int, going: int) -> int:
        """Number of positions in no class or in two; 0 unless something is wrong. Cheap enough to be called often."""
        faults = open_ones = 0
        for part in self._partitions.values():
            faults += part.book.missing_count + part.book.doubled_count
            open_ones += part.frontier.unsettled
        return faults + abs(open_ones + self._detached + self._redriven - in_flight - len(self._holding) - going)

    @property
    def _detached(self) -> int:
        """Number of settled items that are still out, or on their way into a store."""
        return sum(len(part.detached) for part in self._partitions.values())

    @property
    def _redriven(self) -> int:
        """Number of settled items that have another life."""
        return sum(len(part.redriven) for part in self._partitions.values())

    def classes(self, in_flight: int, going: int) -> dict[str, int]:
        """Number of positions in each class since the audits began; cheap, too. `in_flight` items are out."""
        parts = self._partitions.values()
        ended = Counter(dict(enumerate(map(sum, zip(*[part.book.tally for part in parts], strict=True)))))
        for part in parts:
            for fate, count in part.book.ahead().items():
                ended[fate] += count
        counts = {fate.label: count for fate in Fate if (count := ended[fate])}
        again = [len(part.redriven.keys() & self._holding.positions(part)) for part in parts if part.redriven]
        held = len(self._holding) - sum(again)
        out = {HELD: held, IN_FLIGHT: in_flight + going - self._detached - self._redriven + sum(again)}
        return counts | {name: count for name, count in out.items() if count}

    def _in_flight(
        self, part: Partition, flights: Mapping[int, HandOut], leaving: Iterable[tuple[Partition, int]]
    ) -> list[int]:
        """The positions of unsettled items that are out, or on their way to a worker or into a store."""
        mine = [flight for flight in flights.values() if flight.place.parts or flight.place.partition is part]
        out = [(flight.place, index) for flight in mine for index in flight.still_open()]
        going = [items.position(index) for items, index in out if items.part(index) is part]
        going += self._inherited.positions(part)
        going += [position for where, position in leaving if where is part]
        if not (part.detached or part.redriven):
            return going
        return [position for position in going if position not in part.detached and position not in part.redriven]
