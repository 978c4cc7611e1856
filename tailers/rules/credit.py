"""Credit of a session (a flow-control window), as its scheduler grants it: limits by cell, a total, and closed cells.

A cell is one ⟨function, priority⟩. Limits are absolute (how many items may be pushed and not yet got back), so a
repeated or reordered grant is harmless. A cell without a limit gets nothing: its items stay in their source and cost no
attempt. A clogged function (its circuit breaker is open) may have one item at a time out, to see whether it works
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...model.demand import Address, Cell, Closed, addresses, spared
from ...model.workload import Kind

#: Kinds whose gate was looked up; forgotten whole when full.
_REMEMBERED = 65_536


class Credit:
    """Limits of one session, and the items that are out against them.

    Invariants: `out` is the sum of `_out`, the items pushed and not yet returned, and is never negative; `clogs` and
    `closed` have no cell in common; `_probing` counts the items of a function that are out and were pushed since it is
    clogged; `_rooms` has the room that limits leave to every cell not in `_stale`; `opened` rises whenever a cell that
    had no room may have some.
    """

    def __init__(self) -> None:
        self._limits: dict[Cell, int] = {}
        self._out: dict[Cell, int] = {}
        self.total = 0
        self.out = 0
        self.closed: frozenset[Closed] = frozenset()
        self.for_queue: frozenset[Closed] = frozenset()  # `closed`, with the cells that are dropped inside of it
        self._named: dict[Address, Closed] = {}  # by the address that they close: there may be many
        self._dropped: frozenset[Address] = frozenset()
        self.clogs: dict[str, Closed] = {}
        self._probing: dict[str, int] = {}
        self._is_closed: dict[Kind, str] = {}
        self._rooms: dict[Cell, int] = {}
        self._stale: set[Cell] = set()
        self._roomy: Cell | None = None
        self.opened = 0

    def limit(self, cells: Iterable[tuple[Cell, int]], total: int) -> None:
        """Sets the limits of some cells, and of all together (0: unchanged)."""
        for cell, limit in cells:
            self._limits[cell] = limit
            self._stale.add(cell)
        if total:
            self.total = total

    def close(self, closed: Iterable[Closed]) -> None:
        """Replaces the closed cells, whole. An item that a gate drops is pushed all the same and comes back dropped,
        unless a closed cell that is not less specific holds it."""
        closed = list(closed)
        self.closed = frozenset(cell for cell in closed if not cell.drop and not cell.probes)
        dropped = frozenset(cell for cell in closed if cell.drop)
        self.for_queue = self.closed | dropped if self.closed else self.closed
        self._dropped = frozenset(cell.which for cell in dropped)
        self._named = {}
        for cell in self.closed:
            former = self._named.get(cell.which)
            if former is None or cell.priority < former.priority:  # it closes that rank, too
                self._named[cell.which] = cell
        self.clogs = {cell.function: cell for cell in closed if cell.probes}
        self._probing = {name: self._probing.get(name, 0) for name in self.clogs}
        self._is_closed.clear()
        self.opened += 1

    def reset(self) -> None:
        """Starts over for another session: nothing is granted, nothing is out."""
        self.__init__()  # type: ignore[misc]

    @property
    def total_room(self) -> int:
        """Number of items that may still be pushed, all cells together; 0 while less than a sixteenth of the total is
        free and others are out, since a few items do not pay for their message."""
        room = self.total - self.out
        if room <= 0 or (room < self.total >> 4 and self.out) or not self._any_room():
            return 0  # … or nobody can run anything: items that were read could only be held
        return room

    def _any_room(self) -> bool:
        """Whether a cell has room; mostly it is the one that had some when this was asked before."""
        limits, out, cell = self._limits, self._out, self._roomy
        if cell is None or limits[cell] <= out.get(cell, 0):
            self._roomy = next((each for each, limit in limits.items() if limit > out.get(each, 0)), None)
        return self._roomy is not None

    def room(self, cell: Cell) -> int:
        """Number of items of one cell that may still be pushed."""
        room = min(self._limits.get(cell, 0) - self._out.get(cell, 0), self.total - self.out)
        if self.clogs and cell.function in self.clogs:
            room = min(room, self._probes_left(cell.function))
        return max(0, room)

    def batch_room(self, cell: Cell) -> int:
        """Number of items of one cell that are worth reading ahead: its `room`, but 0 while less than a sixteenth of
        the limit is free and others are out."""
        room = self.room(cell)
        if self.clogs and cell.function in self.clogs:
            return room
        return 0 if room < self._limits.get(cell, 0) >> 4 and self._out.get(cell) else room

    def rooms(self) -> Mapping[Cell, int]:
        """The room of every cell that has some; a view that later calls change. Only cells that changed are computed
        again."""
        limits, out, rooms = self._limits, self._out, self._rooms
        for cell in self._stale:
            room = limits.get(cell, 0) - out.get(cell, 0)
            if room > 0:
                self.opened += cell not in rooms
                rooms[cell] = room
            else:
                rooms.pop(cell, None)
        self._stale.clear()
        if self.clogs:
            return {cell: room for cell in rooms if (room := self.room(cell))}
        return rooms

    def known(self, cell: Cell) -> bool:
        """Whether the scheduler ever named the cell."""
        return cell in self._limits

    def granted(self, function: str) -> bool:
        """Whether any items of a function are wanted: some worker runs it."""
        return any(limit for cell, limit in self._limits.items() if cell.function == function)

    def served(self) -> set[str]:
        """The functions of which any items are wanted."""
        return {cell.function for cell, limit in self._limits.items() if limit}

    def fits(self, counts: Mapping[Cell, int]) -> bool:
        """Whether so many items of each cell may all be pushed."""
        limits, out = self._limits, self._out
        if sum(counts.values()) > self.total - self.out:
            return False
        if self.clogs and any(cell.function in self.clogs for cell in counts):
            return False
        for cell, count in counts.items():  # noqa: SIM110 - the plain loop takes half the time
            if count > limits.get(cell, 0) - out.get(cell, 0):
                return False
        return True

    def take(self, counts: Mapping[Cell, int]) -> None:
        """Notes that items were pushed."""
        out = self._out
        for cell, count in counts.items():
            out[cell] = out.get(cell, 0) + count
            if self.clogs and cell.function in self.clogs:
                self._probing[cell.function] += count
        self._stale.update(counts)
        self.out += sum(counts.values())

    def clogged_since(self, then: Mapping[str, Closed], counts: Mapping[Cell, int]) -> None:
        """Counts items as probes whose credit was taken when the functions in `then` were clogged, and whose own is
        clogged since: they are out as much as those that were pushed later."""
        for cell, count in counts.items() if self.clogs is not then else ():
            clog = self.clogs.get(cell.function)
            if clog is not None and clog != then.get(cell.function):
                self._probing[cell.function] += count

    def give(self, counts: Mapping[Cell, int], earlier: Mapping[Cell, int] | None = None) -> None:
        """Notes that items came back. `earlier`: how many of them were pushed before their function was clogged: those
        were no probes, so their return lets none out."""
        out = self._out
        for cell, count in counts.items():
            left = out[cell] - count
            assert left >= 0, f"more of {cell} came back than was pushed"
            out[cell] = left
            if self.clogs and cell.function in self.clogs:
                probes = count - (earlier.get(cell, 0) if earlier else 0)
                self._probing[cell.function] = max(0, self._probing[cell.function] - probes)
        self._stale.update(counts)
        self.out -= sum(counts.values())

    def why_closed(self, kind: Kind) -> str:
        """The reason why a kind is closed; empty when it is not."""
        if kind.function in self.clogs:
            return self.clogs[kind.function].reason or "clogged"
        return self._gate(kind)

    def is_closed(self, kind: Kind) -> bool:
        """Whether items of a kind would come back held."""
        if self.clogs and kind.function in self.clogs and self._probes_left(kind.function) <= 0:
            return True
        return bool(self.closed) and self._gate(kind) != ""

    def _gate(self, kind: Kind) -> str:
        if not self.closed:
            return ""
        reason = self._is_closed.get(kind)
        if reason is None:
            near = addresses(kind)
            shut = [cell for which in near if (cell := self._named.get(which)) and kind.priority >= cell.priority]
            reason = (shut[0].reason or "closed") if shut else ""
            if shut and self._dropped and spared(self._dropped.intersection(near), [cell.which for cell in shut]):
                reason = ""
            if len(self._is_closed) >= _REMEMBERED:
                self._is_closed.clear()
            self._is_closed[kind] = reason
        return reason

    def _probes_left(self, function: str) -> int:
        return self.clogs[function].probes - self._probing[function]
