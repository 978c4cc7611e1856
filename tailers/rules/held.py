"""Items that were read and may not run now: gated, without credit, throttled, unknown to any worker.

They are kept by position only (40 bytes each), in order within their kind, until their cell opens or their not-before
time passes. Being held costs no attempt. The bound is the window's: no position is held beyond `window.positions`. The
place of an item is known too where it may leave another way (it expires, or its key becomes more urgent).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ...model.demand import Cell
from ...model.workload import Kind

#: Entries that count no longer are looked for and removed once there are at least so many.
_TIDY_FROM = 64


class HeldPositions:
    """One partition's held positions.

    Invariants: a position is in exactly one of `_ready` (by cell, then kind) and `_later` (by not-before time, with its
    kind and whether it goes first then); `_gone` has the positions of a kind's deque that count no longer; every kind
    in `_ready` has one that does; `_where` has the kind of those in `_ready` that were said to be movable; `len` counts
    both.
    """

    __slots__ = ("_count", "_gone", "_later", "_ready", "_times", "_where")

    def __init__(self) -> None:
        self._ready: dict[Cell, dict[Kind, deque[int]]] = {}
        self._gone: dict[Kind, set[int]] = {}
        self._where: dict[int, Kind] = {}
        self._later: dict[int, tuple[float, Kind, bool]] = {}
        self._times: list[tuple[float, int]] = []  # a heap; entries that `_later` does not confirm count no longer
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def later(self) -> int:
        """Number of positions that wait for their time."""
        return len(self._later)

    @property
    def next_time(self) -> float | None:
        """The next not-before time; None: no position waits for one."""
        while self._times and not self._is_due(*self._times[0]):
            heapq.heappop(self._times)
        return self._times[0][0] if self._times else None

    def hold(
        self,
        kind: Kind,
        positions: Iterable[int],
        not_before: float = 0.0,
        *,
        first: bool = False,
        movable: bool = False,
    ) -> None:
        """Keeps positions until their cell opens, and not before that time (0: no time). `first`: they leave before
        others of their kind, since they had their turn. `movable`: they may be moved, or withdrawn."""
        if not_before:
            for position in positions:
                self._later[position] = (not_before, kind, first)
                heapq.heappush(self._times, (not_before, position))
                self._count += 1
            return
        gone = self._gone.get(kind)
        if movable or gone:
            for position in positions:
                self._count += 1
                self._enter(kind, position, first=first, movable=movable)
            return
        positions = list(positions)
        if positions:
            waiting = self._waiting(kind)
            (waiting.extendleft if first else waiting.extend)(positions)
            self._count += len(positions)

    def ripen(self, now: float) -> list[int]:
        """Moves positions whose time has passed to the ready ones, and returns them."""
        moved: list[int] = []
        while self._times and self._times[0][0] <= now:
            time, position = heapq.heappop(self._times)
            if self._is_due(time, position):
                _, kind, first = self._later.pop(position)
                self._enter(kind, position, first=first, movable=True)
                moved.append(position)
        return moved

    def hasten(self, position: int) -> bool:
        """Ends the wait of a position for its time. Returns whether it waited for one."""
        if position not in self._later:
            return False
        _, kind, first = self._later[position]
        self._later[position] = (0.0, kind, first)
        heapq.heappush(self._times, (0.0, position))
        return True

    def cells(self) -> Iterator[Cell]:
        """Iterates over the cells that something waits for; positions may be taken meanwhile."""
        return iter(list(self._ready))

    def ready(self, cell: Cell, is_closed: Callable[[Kind], bool]) -> int:
        """Number of positions of a cell that may be taken."""
        kinds = self._ready.get(cell, {})
        return sum(self._size(kind, waiting) for kind, waiting in kinds.items() if not is_closed(kind))

    def take(self, cell: Cell, count: int, is_closed: Callable[[Kind], bool]) -> list[int]:
        """Takes up to `count` positions of a cell, kinds in turns, none of a closed kind; they are no longer held."""
        kinds = self._ready.get(cell)
        taken: list[int] = []
        if not kinds:
            return taken
        open_kinds = [kind for kind in kinds if not is_closed(kind)]
        while open_kinds and len(taken) < count:
            share = max(1, (count - len(taken)) // len(open_kinds))
            still = []
            for kind in open_kinds:
                self._pop(kind, kinds[kind], min(share, count - len(taken)), taken)
                if not self._drop_if_empty(kind):
                    still.append(kind)
            open_kinds = still
        self._count -= len(taken)
        if self._where:
            for position in taken:
                self._where.pop(position, None)
        return taken

    def move(self, position: int, new_kind: Callable[[Kind], Kind]) -> None:
        """Moves a movable position, if it is held, to the end of the kind that `new_kind` makes of its own."""
        if position in self._later:
            time, kind, first = self._later[position]
            self._later[position] = (time, new_kind(kind), first)
        elif position in self._where:
            kind = self._where[position]
            if (new := new_kind(kind)) != kind:
                self._leave(position)
                self._enter(new, position, first=False, movable=True)

    def withdraw(self, positions: Iterable[int]) -> list[int]:
        """Holds movable positions no longer; returns the ones that were held."""
        gone = []
        for position in positions:
            if self._later.pop(position, None) is not None:
                gone.append(position)
            elif position in self._where:
                self._leave(position)
                gone.append(position)
        self._count -= len(gone)
        if len(self._times) > 2 * len(self._later) + _TIDY_FROM:
            self._times = [(time, position) for position, (time, _, _) in self._later.items()]
            heapq.heapify(self._times)
        return gone

    def rename(self, new_kind: Callable[[Kind], Kind]) -> None:
        """Files every position under the kind that `new_kind` makes of its own: a function's own priority became
        known."""
        former = [(kind, self._positions(kind, waiting)) for kind, waiting in self._all()]
        self._ready, self._gone = {}, {}
        for kind, positions in former:
            self._waiting(new_kind(kind)).extend(positions)
        self._where = {position: new_kind(kind) for position, kind in self._where.items()}
        self._later = {position: (time, new_kind(kind), first) for position, (time, kind, first) in self._later.items()}

    def positions(self) -> Iterator[int]:
        """Yields all held positions, in no order."""
        for kind, waiting in self._all():
            yield from self._positions(kind, waiting)
        yield from self._later

    def counts(self) -> dict[Kind, int]:
        """Number of positions that wait of each kind, for people."""
        counts = {kind: self._size(kind, waiting) for kind, waiting in self._all()}
        for _, kind, _ in self._later.values():
            counts[kind] = counts.get(kind, 0) + 1
        return counts

    def _all(self) -> Iterator[tuple[Kind, deque[int]]]:
        for kinds in self._ready.values():
            yield from kinds.items()

    def _waiting(self, kind: Kind) -> deque[int]:
        return self._ready.setdefault(Cell(kind.function, kind.priority), {}).setdefault(kind, deque())

    def _is_due(self, time: float, position: int) -> bool:
        return position in self._later and self._later[position][0] == time

    def _enter(self, kind: Kind, position: int, *, first: bool, movable: bool) -> None:
        gone = self._gone.get(kind)
        if gone and position in gone:  # its old place counts again
            gone.discard(position)
        else:
            waiting = self._waiting(kind)
            (waiting.appendleft if first else waiting.append)(position)
        if movable:
            self._where[position] = kind

    def _leave(self, position: int) -> None:
        kind = self._where.pop(position)
        gone = self._gone.setdefault(kind, set())
        gone.add(position)
        waiting = self._waiting(kind)
        if not self._drop_if_empty(kind) and len(gone) > len(waiting) >> 1 and len(gone) >= _TIDY_FROM:
            kept = self._positions(kind, waiting)
            waiting.clear()
            waiting.extend(kept)
            gone.clear()

    def _pop(self, kind: Kind, waiting: deque[int], count: int, taken: list[int]) -> None:
        gone = self._gone.get(kind)
        if not gone:
            taken.extend([waiting.popleft() for _ in range(min(count, len(waiting)))])
            return
        while count and waiting:
            position = waiting.popleft()
            if position in gone:
                gone.discard(position)
            else:
                taken.append(position)
                count -= 1

    def _size(self, kind: Kind, waiting: deque[int]) -> int:
        return len(waiting) - len(self._gone.get(kind, ()))

    def _positions(self, kind: Kind, waiting: deque[int]) -> Iterable[int]:
        gone = self._gone.get(kind)
        return [position for position in waiting if position not in gone] if gone else waiting

    def _drop_if_empty(self, kind: Kind) -> bool:
        cell = Cell(kind.function, kind.priority)
        if self._size(kind, self._ready[cell][kind]):
            return False
        self._gone.pop(kind, None)
        del self._ready[cell][kind]
        if not self._ready[cell]:
            del self._ready[cell]
        return True
