"""Holding of a stream's items that may not run now: they are kept by position, offered again when credit, a gate or
their time allows it, and read again where their payload was released. Pure.

`rules/held.py` says which items are held, and in which order they leave; this is the memory around it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from ..model.demand import Cell
from ..model.workload import FLIGHT_ITEMS
from ..sdk.source import StreamBatch
from .config import TailerConfig
from .items import Items
from .partition import Kept, Partition
from .rules.credit import Credit
from .rules.look_ahead import LookAhead
from .rules.window import ReadRoom
from .surroundings import Decisions, Surroundings

#: Bytes that are read again at once, about; and the weight of the newest batch in the average size of an item.
REREAD_BYTES, MEAN_SHARE = 8 << 20, 0.2
#: The reason why items are held, when a worker runs their function and their cell is not closed.
_NO_CREDIT = "no credit or not due"


@dataclass(frozen=True, slots=True, eq=False)
class Rereading:
    """Held items of one cell that are to be read again. Their credit is reserved, with the session of that time; None:
    they expired, and need no credit."""

    part: Partition
    positions: list[int]
    cell: Cell | None = None
    credit: Credit | None = None


class Holding:
    """Held items of one tailer. `partitions` is the core's own, and grows; `rereads` says whether the source can read
    an item again.

    Invariants: the kept payloads are counted in their windows and take at most half of one, unless the source cannot
    read again; `reading_again` counts the items that are held no more and not yet read again.
    """

    def __init__(
        self,
        config: TailerConfig,
        partitions: Mapping[str, Partition],
        seen: Surroundings,
        decided: Decisions,
        *,
        rereads: bool,
    ) -> None:
        self.reading_again = 0
        self._holders: dict[Partition, None] = {}
        self._look_ahead = LookAhead(config.looks_ahead)
        self._expires = config.expires is not None
        self._buries = config.on_expiry == "dead_letter"  # for which expired items must be in memory
        self._rereads = rereads
        self._partitions = partitions
        self._seen = seen
        self._decided = decided
        self._again: list[Rereading] = []
        self._entries: dict[tuple[Partition, int], Rereading] = {}  # by item that is being read again
        self._kept_items = 0
        self._kept_bytes = 0
        self._mean_bytes = 0.0  # of an item, as read; 0: none was

    def __len__(self) -> int:
        lines = [part.order.waiting for part in self._partitions.values() if part.order is not None]
        return sum([len(part.held) for part in self._holders]) + sum(lines) + self.reading_again

    def watch(self, part: Partition) -> None:
        """Watches a partition of this tailer."""
        part.holders = self._holders

    def _holding(self) -> list[Partition]:
        """The partitions that hold something: mostly none, however many there are."""
        for part in [part for part in self._holders if not part.held]:
            del self._holders[part]
        return list(self._holders)

    def hold(
        self,
        items: Items,
        index: int,
        not_before: float = 0.0,
        *,
        expires: bool = True,
        lost: bool = False,
        runs: bool = False,
    ) -> None:
        """Holds an item that is in memory, by its position, until its cell opens and not before a time, or until it
        expires (unless `expires` is false). `lost`: it was out, and was lost. `runs`: it may run until that time, and
        cannot expire before."""
        part, position, kind = items.part(index), items.position(index), items.mapped.kinds[index]
        if lost:
            part.lost(position)
        expires_at = items.mapped.expires_at(index) if expires and self._expires else 0.0
        part.hold(kind, position, not_before, expires_at, runs=runs)
        if not_before or expires_at:
            self.look()  # its time may be the next one, and nothing else may happen before it
        if not_before or self._seen.credit.is_closed(kind):
            part.stuck((position,))
        self.keep(items, index)

    def keep(self, items: Items, index: int) -> None:
        """Keeps an item in memory by its position from now on. Its payload stays only while half the window is enough
        for such payloads, or when the source cannot read it again: a redriven one's letter has it."""
        part, batch = items.part(index), items.batch
        position, payload = batch.positions[index], batch.payloads[index]
        window = part.window
        keep = self._kept_items < window.items >> 1 and self._kept_bytes + len(payload) <= window.bytes >> 1
        if keep or not self._rereads or position in part.redriven:
            part.kept[position] = Kept(batch.times[index], batch.keys[index], batch.headers[index], payload)
            self._kept_items += 1
            self._kept_bytes += len(payload)
        else:
            window.give(1, len(payload))

    def rooms(self, new: Mapping[Cell, int]) -> dict[Cell, int] | None:
        """Number of new items of each cell that may go without passing waiting items that are as urgent; None: no item
        waits."""
        waiting = _counts(self._ready())
        credit = self._seen.credit
        return self._look_ahead.left_for(new, waiting, credit.room, credit.total - credit.out) if waiting else None

    def within_look_ahead(self, room: ReadRoom) -> ReadRoom:
        """The part of `room` that may be read ahead of items that wait for nothing but their turn."""
        if not self._look_ahead.most or not room.items:
            return room
        granted = self._seen.credit.granted
        ahead = self._look_ahead.room(sum(n for cell, n in _counts(self._ready()).items() if granted(cell.function)))
        return room if ahead is None else ReadRoom(min(room.items, ahead), room.bytes)

    def _ready(self) -> dict[Cell, dict[Partition, int]]:
        """Number of items that wait for nothing but credit, by cell and partition."""
        waiting: dict[Cell, dict[Partition, int]] = {}
        is_closed = self._seen.credit.is_closed
        for part in self._holding():
            for cell in part.held.cells():
                if ready := part.held.ready(cell, is_closed):
                    waiting.setdefault(cell, {})[part] = ready
        return waiting

    def with_credit(self, items: Items, idle: bool, rooms: dict[Cell, int] | None = None) -> Items:
        """The items that may be pushed now, within their cells' credit and `rooms`; the others are held. `idle`: all
        are held."""
        mapped = items.mapped
        now, wall, credit = self._seen.monotonic, self._seen.wall, self._seen.credit
        going: list[int] = []
        rooms = {} if rooms is None else dict(rooms)
        total = 0 if idle else credit.total - credit.out
        gated = bool(credit.closed or credit.clogs)
        for index, cell in enumerate(mapped.cells):
            due = mapped.due.get(index, 0.0)
            if due > wall:
                self.hold(items, index, now + due - wall, expires=False)
                continue
            room = rooms[cell] if cell in rooms else credit.room(cell)
            if room > 0 and total > 0 and not (gated and credit.is_closed(mapped.kinds[index])):
                going.append(index)
                rooms[cell] = room - 1
                total -= 1
            else:
                self.hold(items, index)
        return items.chosen(going)

    def look(self) -> None:
        """Asks the shell to look again: an item may be offered that could not be before."""
        self._decided.look = True

    # For people.

    def functions(self) -> set[str]:
        """The functions of held items."""
        return {kind.function for part in self._holding() for kind in part.held.counts()}

    def positions(self, part: Partition) -> list[int]:
        """The positions of a partition's items that are held, wait behind others, or are being read again."""
        again = [position for entry in self._again if entry.part is part for position in entry.positions]
        return [*part.held_positions(), *again, *[position for where, position in self._entries if where is part]]

    def why(self) -> str:
        """The three commonest reasons why items are held, each with their number."""
        kinds: dict[str, int] = defaultdict(int)
        for part in self._holding():
            for kind, count in part.held.counts().items():
                why = self._seen.credit.why_closed(kind)
                served = self._seen.credit.granted(kind.function)
                kinds[why or (_NO_CREDIT if served else f'no worker runs "{kind.function}"')] += count
        for part in self._partitions.values():
            if part.order is not None and part.order.waiting:
                kinds[part.why_waiting()] += part.order.waiting
        for backs in [part.hand_backs for part in self._partitions.values() if part.hand_backs]:
            if waiting := min(backs.waiting(self._seen.monotonic), kinds[_NO_CREDIT]):
                kinds[backs.why] += waiting
                kinds[_NO_CREDIT] -= waiting
        return "; ".join(
            f"{why} ({count})" for why, count in sorted(kinds.items(), key=lambda one: -one[1])[:3] if count
        )

    # Offering held items.

    def wait(self) -> float | None:
        """Seconds until held items are to be offered again, if nothing happens before; None: none waits for a time."""
        times = [part.held.next_time for part in self._holding() if part.held.later]
        first = min((time for time in times if time is not None), default=None)
        waits = [] if first is None else [first - self._seen.monotonic]
        if self._expires and self._seen.active:
            ends = [part.deadlines.next_time for part in self._partitions.values() if self._room_to_expire(part)]
            waits += [end - self._seen.wall for end in ends if end is not None]
        return max(0.0, min(waits)) if waits else None

    def offered(self) -> Iterator[tuple[Partition, StreamBatch]]:
        """Yields held items that may go now and whose payload is in memory; they are held no more. The caller pushes or
        holds each batch before it asks for the next one. Items without their payload are read again."""
        credit = self._seen.credit
        for part in self._holding():
            part.ripen(self._seen.monotonic)
        if not self._seen.active:
            return
        ready = self._ready()
        turns = self._look_ahead.turns(_counts(ready), credit.room, credit.total - credit.out)
        for cell, turn in turns.items():
            for part in ready[cell]:
                room = min(turn, credit.room(cell), self._memory(part))
                taken = part.take(cell, room, credit.is_closed) if room > 0 else []
                if not taken:
                    continue
                turn -= len(taken)
                batch, missing = self._take_kept(part, taken)
                if batch.positions:
                    yield part, batch
                if missing:
                    credit.take(Counter({cell: len(missing)}))
                    self._read_again(Rereading(part, missing, cell, credit))

    def expired(self) -> Iterator[tuple[Partition, StreamBatch, list[int]]]:
        """Yields held items whose deadline passed: those whose payload is in memory, and the positions of those whose
        payload nobody needs. The caller ends each batch before it asks for the next one, since items that wait behind
        these in their lines may have expired, too."""
        if not (self._expires and self._seen.active):
            return
        for part in list(self._partitions.values()):
            while (most := self._room_to_expire(part)) and (over := part.expire(self._seen.wall, most)):
                batch, missing = self._take_kept(part, over)
                if missing and self._buries:
                    self._read_again(Rereading(part, missing))
                    missing = []
                yield part, batch, missing

    def _take_kept(self, part: Partition, positions: list[int]) -> tuple[StreamBatch, list[int]]:
        """Takes the items whose payload is still in memory, and the positions of the others."""
        batch, missing = part.take_kept(positions)
        self._kept_items -= len(batch.positions)
        self._kept_bytes -= sum(map(len, batch.payloads))
        return batch, missing

    def _room_to_expire(self, part: Partition) -> int:
        """Number of expired items for which there is memory, where they need it."""
        return self._memory(part) if self._buries else FLIGHT_ITEMS

    def _memory(self, part: Partition) -> int:
        """Number of held items for which there is memory: at most one hand-out, and as many as fit into the free bytes
        at the average size. Kept payloads use at most half of the window, so that something always moves."""
        if not self._rereads:
            return FLIGHT_ITEMS  # all of them are in memory
        window, again, mean = part.window, self.reading_again, self._mean_bytes
        free = window.bytes - window.used_bytes - int(again * mean)
        if window.used_items + again >= window.items or free < window.bytes >> 4:  # a few at a time would cost more
            return 1 if part.redriven else 0  # which are in memory, perhaps more of them than there is room for
        return min(FLIGHT_ITEMS, ceil(free / mean)) if mean else FLIGHT_ITEMS

    # Reading again.

    def saw(self, items: int, size: int) -> None:
        """Notes the size of items that came, for the average size of an item that is read again."""
        if items:
            self._mean_bytes += (size / items - self._mean_bytes) * (MEAN_SHARE if self._mean_bytes else 1.0)

    def _read_again(self, again: Rereading) -> None:
        self._again.append(again)
        self.reading_again += len(again.positions)

    def to_reread(self) -> list[tuple[Partition, list[int]]]:
        """Takes the held items that are to be read again, of all cells, by partition in the order of their positions:
        neighbours are read together, about REREAD_BYTES at once. Their credit is reserved, so that they are not
        overtaken for ever."""
        again, self._again = self._again, []
        most = max(1, min(FLIGHT_ITEMS, int(REREAD_BYTES / self._mean_bytes))) if self._mean_bytes else FLIGHT_ITEMS
        missing: defaultdict[Partition, list[int]] = defaultdict(list)
        for entry in again:
            missing[entry.part] += entry.positions
            self._entries |= {(entry.part, position): entry for position in entry.positions}
        return [
            (part, positions[begin : begin + most])
            for part, unsorted in missing.items()
            for positions in (sorted(unsorted),)
            for begin in range(0, len(positions), most)
        ]

    def reread(self, part: Partition, positions: list[int]) -> None:
        """Notes that items were read again, or are gone: their credit is given back, and is taken anew when they are
        pushed."""
        for entry, count in Counter([self._entries.pop((part, position)) for position in positions]).items():
            if entry.credit is not None and entry.cell is not None:
                entry.credit.give({entry.cell: count})
        self.reading_again -= len(positions)


def _counts(ready: Mapping[Cell, Mapping[Partition, int]]) -> dict[Cell, int]:
    """Number of items that wait, by cell, in all partitions."""
    return {cell: sum(parts.values()) for cell, parts in ready.items()}
