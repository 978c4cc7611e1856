"""Items that a former owner of the source handed out and that still run: adopted, not run again (L12).

Their scheduler names them by position, and their outcomes come to the session with it, the tailer's own or a side
(rules/flight_numbers.py has the numbers). Their records are read with all others, since an item that failed is settled
with its payload; whichever comes first, record or outcome, waits for the other.

In a stream with order such an item may stand behind one of its key that is not known to be done: the former owner had
settled it, and died before that was durable. Then both are to run again, in their order: the adopted one is stopped,
and its outcome, if it has one, counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ...model.item_key import ItemKey
from ...model.workload import INDEX_BITS, Ended, Outcomes, ref
from ..items import Items
from ..partition import Partition
from ..rules.flight_numbers import OWN, side_of
from ..rules.ledger import knows_end
from ..session import Inheritance


class InheritedItem(NamedTuple):
    """An item that was read, in columns of its own, and the fence of the attempt that runs."""

    items: Items
    fence: int


class InheritedTurns(Protocol):
    """Turns of items in a stream with order (ordering.py); without order, each item's own.

    shut     whether some items that run have not been read: until then nothing in order is handed out
    runs     an item that may run was read. False: it is to run again, after others
    stopped  an item that was to run again does not run any more, or not after that time
    """

    def shut(self, part: Partition, *, shut: bool) -> None: ...

    def runs(self, item: Items) -> bool: ...

    def stopped(self, part: Partition, position: int, not_before: float) -> None: ...


class Inherited:
    """Adopted items of one tailer.

    Invariant: an adopted item has no outcome (it is in `running`), or no record yet, or is settled, or runs again.

    `settle` is called when both are there; `again` with a record whose attempt was lost with its session, and the
    monotonic time before which it may not be handed out; `cancel` with the items to be stopped: the succession sets it,
    which has the sessions that are told.
    """

    def __init__(
        self,
        settle: Callable[[InheritedItem, Ended], None],
        again: Callable[[InheritedItem, float], None],
        turns: InheritedTurns,
    ) -> None:
        self._settle = settle
        self._again = again
        self._turns = turns
        self.cancel: Callable[[list[int]], None] = lambda refs: None
        self.running: set[int] = set()
        self._unread: dict[ItemKey, int] = {}
        self._fences: dict[int, int] = {}  # of flights
        self._records: dict[int, InheritedItem] = {}
        self._ends: dict[int, Ended] = {}
        self._lost: dict[ItemKey, float] = {}
        self._strays: dict[int, tuple[Partition, int]] = {}
        self._shut: dict[str, Partition] = {}

    def accept(self, flights: Iterable[Inheritance], elsewhere: Mapping[ItemKey, float] = MappingProxyType({})) -> None:
        """Adopts exactly these flights. Items `elsewhere` run where nobody hears how they end: they are handed out
        again, not before that time (monotonic)."""
        self.clear()
        self.add(flights)
        self._lost.update({key: until for key, until in elsewhere.items() if key not in self._unread})

    def add(self, flights: Iterable[Inheritance]) -> None:
        """Adopts these flights as well, by the numbers that they have here, before anything is read. Their items are
        `elsewhere` no more: their ends will be heard."""
        for number, fence, part, positions in flights:
            self._fences[number] = fence
            for index, position in positions.items():
                self._lost.pop((part, position), None)
                self._unread[part, position] = item = ref(number, index)
                self.running.add(item)

    def clear(self) -> None:
        """Forgets everything that was adopted."""
        for each in (self.running, self._unread, self._fences, self._records, self._ends, self._lost, self._strays):
            each.clear()

    def __len__(self) -> int:
        """Number of items that were read and have no outcome."""
        return len(self._records)

    @property
    def pending(self) -> bool:
        """Whether an adopted item is not settled yet."""
        return bool(self.running or self._unread or self._records or self._ends or self._lost)

    @property
    def awaits_some(self) -> bool:
        """Whether an adopted item is still to be read, or was and keeps others waiting."""
        return bool(self._unread or self._lost or self._shut)

    def positions(self, part: Partition) -> list[int]:
        """Positions, in one partition, of the items that were read and have no outcome."""
        mine = [record.items for record in self._records.values() if record.items.partition is part]
        return [item.position(0) for item in mine]

    def positions_of(self, name: str) -> set[int]:
        """Positions, in a partition that was not read yet, of items that were adopted or run elsewhere."""
        return {position for part, position in chain(self._unread, self._lost) if part == name}

    def runs(self, key: ItemKey) -> bool:
        """Whether an item that was not read yet was adopted, and its end will be heard of."""
        return key in self._unread

    def elsewhere(self, key: ItemKey) -> float | None:
        """The time until which an item may run of whose end nobody hears; from now on the caller cares for it. None: it
        does not run there."""
        return self._lost.pop(key, None)

    def records(self) -> Iterable[InheritedItem]:
        """The items that were read and have no outcome."""
        return self._records.values()

    # Records.

    def took(self, items: Items) -> Items:
        """Takes items read for the first time; returns the ones to be pushed. In a stream with order it is one item."""
        part = items.partition
        if not self._awaits(part.name):
            return items
        self._shut[part.name] = part
        self._turns.shut(part, shut=True)
        going = []
        for index in range(len(items)):
            key = items.key(index)
            number = self._unread.pop(key, None)
            not_before = self._lost.pop(key, None)
            if number is not None and knows_end(part.rows.get(key[1]), self._fences[number >> INDEX_BITS]):
                self._leave(number)  # the former owner heard the end that is said again
                number = None
            if number is None and not_before is None:
                going.append(index)
            else:
                self._read(items.one(index), number, not_before)
        return items.chosen(going)

    def _read(self, item: Items, number: int | None, not_before: float | None) -> None:
        """Takes the record of an item that runs or has ended (`number`), or was lost and may run until `not_before`."""
        part, position = item.partition, item.position(0)
        ended = None if number is None else self._ends.pop(number, None)
        if not self._turns.runs(item):
            if number is None or ended is not None:
                self._turns.stopped(part, position, not_before or 0.0)
            else:
                self._strays[number] = (part, position)
                self.cancel([number])
        elif number is None:
            self._again(InheritedItem(item, 0), not_before or 0.0)
        else:
            record = InheritedItem(item, self._fences[number >> INDEX_BITS])
            if ended is None:
                self._records[number] = record
            else:
                self._settle(record, ended)

    def passed(self, part: Partition) -> None:
        """Forgets adopted items that are settled already, and those below the end of what was read, all of which has
        come: they are gone."""
        if not (self._unread or self._lost or self._shut):
            return
        for key in self._awaited(part.name):
            if key[1] < part.frontier.end or part.frontier.is_settled(key[1]):
                self._forget(key)
        self._open()

    def ends_at(self, ends: Mapping[str, int]) -> None:
        """Forgets items adopted at a partition's end or beyond, once nothing of them runs: they were read before the
        stream went back (its store was restored), and are never read again."""
        if self._unread or self._lost:
            for key in [*self._unread, *self._lost]:
                if key[1] >= ends.get(key[0], key[1] + 1) and self._unread.get(key) not in self.running:
                    self._forget(key)
            self._open()

    def give_up(self, now: float) -> None:
        """Forgets adopted items that were not read and of which nothing runs any more, so that they run again: nothing
        can be read before something is handed out, and that waits for them."""
        for name in list(self._shut):
            keys = self._awaited(name)
            if all(self._unread.get(key) not in self.running and self._lost.get(key, now) <= now for key in keys):
                for key in keys:
                    self._forget(key)
        self._open()

    def _open(self) -> None:
        for name in [name for name in self._shut if not self._awaits(name)]:
            self._turns.shut(self._shut.pop(name), shut=False)

    def _awaits(self, name: str) -> bool:
        return bool(self._unread or self._lost) and any(key[0] == name for key in chain(self._unread, self._lost))

    def _awaited(self, name: str) -> list[ItemKey]:
        return [key for key in chain(self._unread, self._lost) if key[0] == name]

    def _forget(self, key: ItemKey) -> None:
        self._lost.pop(key, None)
        number = self._unread.pop(key, None)
        if number is not None:
            self._leave(number)

    def _leave(self, number: int) -> None:
        self.running.discard(number)
        self._ends.pop(number, None)

    # Outcomes.

    def came(self, outcomes: Outcomes) -> None:
        """Takes outcomes by the numbers that they have here; those of other items are not looked at."""
        if not self.running:
            return
        mine = [(number, Ended(1)) for number in outcomes.succeeded if number in self.running]
        mine += [(number, ended) for number, ended in outcomes.ended.items() if number in self.running]
        for number, ended in mine:
            self.running.discard(number)
            record = self._records.pop(number, None)
            if number in self._strays:
                self._turns.stopped(*self._strays.pop(number), 0.0)
            elif record is None:
                self._ends[number] = ended
            else:
                self._settle(record, ended)

    def lost(self, not_before: float, side: int = OWN) -> None:
        """Notes that a session is gone for good: its items without an outcome are handed out anew, not before then."""
        keys = {number: key for key, number in self._unread.items()}
        for number in [number for number in self.running if side_of(number) == side]:
            self.running.discard(number)
            record = self._records.pop(number, None)
            if number in self._strays:
                self._turns.stopped(*self._strays.pop(number), not_before)
            elif record is None:
                key = keys[number]
                del self._unread[key]
                self._lost[key] = not_before
            else:
                self._again(record, not_before)
