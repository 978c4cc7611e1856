"""Items that were read and may not run now: gated, without credit, throttled, unknown to any worker.

They are kept by position only (40 bytes each), in order within their kind, until their cell opens or their not-before
time passes. Being held costs no attempt. The bound is the window's: no position is held beyond `window.positions`.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ...sdk.model.demand import Cell
from ...sdk.model.workload import Kind


class Held:
    """One partition's held positions.

    Invariants: a position is in exactly one of `_ready` (by cell, then kind) and `_later` (a heap by not-before time,
    with whether it goes first then); no empty deque and no empty cell is kept; `len` counts both.
    """

    __slots__ = ("_count", "_later", "_ready")

    def __init__(self) -> None:
        self._ready: dict[Cell, dict[Kind, deque[int]]] = {}
        self._later: list[tuple[float, int, Kind, bool]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def later(self) -> int:
        """How many wait for their time."""
        return len(self._later)

    @property
    def next_time(self) -> float | None:
        """When the next not-before time passes."""
        return self._later[0][0] if self._later else None

    def hold(self, kind: Kind, positions: Iterable[int], not_before: float = 0.0, *, first: bool = False) -> None:
        """Keeps positions until their cell opens, and not before that time (0: no time). `first`: they leave before
        others of their kind, since they had their turn."""
        before = self._count
        if not_before:
            for position in positions:
                heapq.heappush(self._later, (not_before, position, kind, first))
                self._count += 1
        else:
            waiting = self._waiting(kind)
            size = len(waiting)
            (waiting.extendleft if first else waiting.extend)(positions)
            self._count += len(waiting) - size
            if self._count == before:
                self._drop_if_empty(kind)

    def ripen(self, now: float) -> int:
        """Moves those whose time has passed to the others; returns how many."""
        moved = 0
        while self._later and self._later[0][0] <= now:
            _, position, kind, first = heapq.heappop(self._later)
            waiting = self._waiting(kind)
            (waiting.appendleft if first else waiting.append)(position)
            moved += 1
        return moved

    def cells(self) -> Iterator[Cell]:
        """The cells that something waits for; may be taken from while iterating."""
        return iter(list(self._ready))

    def take(self, cell: Cell, count: int, is_closed: Callable[[Kind], bool]) -> list[int]:
        """Up to `count` positions of a cell, kinds in turns, none of a closed kind; they are no longer held."""
        kinds = self._ready.get(cell)
        taken: list[int] = []
        if not kinds:
            return taken
        open_kinds = [kind for kind in kinds if not is_closed(kind)]
        while open_kinds and len(taken) < count:
            share = max(1, (count - len(taken)) // len(open_kinds))
            still = []
            for kind in open_kinds:
                waiting = kinds[kind]
                for _ in range(min(share, len(waiting), count - len(taken))):
                    taken.append(waiting.popleft())
                if waiting:
                    still.append(kind)
                else:
                    del kinds[kind]
            open_kinds = still
        if not kinds:
            del self._ready[cell]
        self._count -= len(taken)
        return taken

    def rename(self, new_kind: Callable[[Kind], Kind]) -> None:
        """Files everything under what `new_kind` makes of its kind: a function's own priority became known."""
        ready, self._ready = self._ready, {}
        for kinds in ready.values():
            for kind, waiting in kinds.items():
                self._waiting(new_kind(kind)).extend(waiting)
        self._later = [(time, position, new_kind(kind), first) for time, position, kind, first in self._later]
        heapq.heapify(self._later)

    def positions(self) -> Iterator[int]:
        """All of them, in no order."""
        for kinds in self._ready.values():
            for waiting in kinds.values():
                yield from waiting
        for _, position, _, _ in self._later:
            yield position

    def counts(self) -> dict[Kind, int]:
        """How many wait of each kind, for people."""
        counts = {kind: len(waiting) for kinds in self._ready.values() for kind, waiting in kinds.items()}
        for _, _, kind, _ in self._later:
            counts[kind] = counts.get(kind, 0) + 1
        return counts

    def _waiting(self, kind: Kind) -> deque[int]:
        return self._ready.setdefault(Cell(kind.function, kind.priority), {}).setdefault(kind, deque())

    def _drop_if_empty(self, kind: Kind) -> None:
        cell = Cell(kind.function, kind.priority)
        if not self._ready[cell][kind]:
            del self._ready[cell][kind]
            if not self._ready[cell]:
                del self._ready[cell]
