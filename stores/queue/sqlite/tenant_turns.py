"""Turns of tenants in the queue on SQLite: when the first item of each waiting kind is due, and whose turn it is in
each lane.

A claim takes items of the kinds at the front of its lane, and those kinds go to the end. So whatever one tenant has
waiting does not delay another tenant's next item. Closed kinds are set aside, and cost no claim anything until other
cells are closed. Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from .rows import BLOCKED


class LaneTurns:
    """The kinds of one lane in which items wait. Invariant: each kind is in `due`, in the order of the turns, or in
    `closed`, or has its bound in `later`.

    closed  kinds that were due, and closed for the claim that met them
    later   a heap of ⟨bound, kind⟩, each once (`queued`); an entry counts only while it is the kind's current bound
    gates   the version of the closed cells to which `closed` belongs
    """

    __slots__ = ("closed", "due", "gates", "later", "queued")

    def __init__(self) -> None:
        self.due: OrderedDict[int, None] = OrderedDict()
        self.closed: OrderedDict[int, None] = OrderedDict()
        self.later: list[tuple[int, int]] = []
        self.queued: set[tuple[int, int]] = set()
        self.gates = 0


class TenantTurns:
    """The kinds of a queue in which items wait. Invariants:

    bounds  kind → at most the next trigger of its first item; a kind in which no item waits by itself is absent once a
            claim found that out
    lanes   lanes whose tenants take turns; one in which no item waits any more stays until it leaves (turn_switch.py)
    """

    def __init__(self, lane_of: Mapping[int, int]) -> None:
        self._lane_of = lane_of
        self._gates = 0
        self._closed: object = None
        self.bounds: dict[int, int] = {}
        self.lanes: dict[int, LaneTurns] = {}

    def enter(self, lane: int, firsts: Iterable[tuple[int, int]]) -> None:
        """Starts turns in a lane. `firsts`: when the first item of each of its kinds is due; no other kind has any."""
        self.lanes[lane] = LaneTurns()
        for kind, trigger in firsts:
            self.sooner(kind, trigger)

    def leave(self, lane: int) -> int:
        """Ends the turns in a lane. Returns a time before which no item of it is due."""
        del self.lanes[lane]
        kinds = [kind for kind in self.bounds if self._lane_of[kind] == lane]
        return min((self.bounds.pop(kind) for kind in kinds), default=BLOCKED)

    def first(self, lane: int) -> int:
        """A time before which no item of the lane is due."""
        return min((bound for kind, bound in self.bounds.items() if self._lane_of[kind] == lane), default=BLOCKED)

    def sooner(self, kind: int, trigger: int) -> None:
        """Notes that an item of this kind waits for this moment."""
        if trigger < self.bounds.get(kind, BLOCKED):
            self.bounds[kind] = trigger
            turns = self._turns(kind)
            if kind not in turns.due and kind not in turns.closed:
                self._queue(turns, kind, trigger)

    def at_gates(self, closed: object) -> None:
        """Notes the closed cells of the claim that begins."""
        if closed != self._closed:
            self._closed = closed
            self._gates += 1

    def look(self, lane: int, now: int, shut: Callable[[int], bool]) -> int:
        """Time at which an item of the lane's open kinds is due: at most `now` if one is due."""
        turns = self.lanes[lane]
        if turns.gates != self._gates:
            turns.gates = self._gates
            for kind in reversed(turns.closed):
                turns.due[kind] = None
                turns.due.move_to_end(kind, last=False)
            turns.closed.clear()
        later = turns.later
        while later and later[0][0] <= now:
            entry = heappop(later)
            turns.queued.discard(entry)
            if self.bounds.get(entry[1]) == entry[0] and entry[1] not in turns.closed:
                turns.due.setdefault(entry[1], None)
        while turns.due and shut(first := next(iter(turns.due))):
            del turns.due[first]
            turns.closed[first] = None
        if turns.due:
            return now
        return later[0][0] if later else BLOCKED

    def take(self, lane: int, most: int, shut: Callable[[int], bool]) -> list[int]:
        """Takes up to `most` kinds whose turn it is. Each is in no turn until `keep`, `left` or `waits` is called for
        it."""
        turns = self.lanes[lane]
        taken: list[int] = []
        while turns.due and len(taken) < most:
            kind, _ = turns.due.popitem(last=False)
            if shut(kind):
                turns.closed[kind] = None
            else:
                taken.append(kind)
        return taken

    def keep(self, kind: int) -> None:
        """Keeps a kind that had no turn after all as the next one."""
        due = self._turns(kind).due
        due[kind] = None
        due.move_to_end(kind, last=False)

    def left(self, kind: int, bound: int) -> None:
        """Notes that a kind had its turn, and that it has more items, due from this moment on."""
        self.bounds[kind] = bound
        self._turns(kind).due[kind] = None

    def waits(self, kind: int, trigger: int) -> None:
        """Notes that no item of a kind is due, and the next one waits for this moment (BLOCKED: there is none)."""
        turns = self._turns(kind)
        turns.due.pop(kind, None)
        if trigger < BLOCKED:
            self.bounds[kind] = trigger
            self._queue(turns, kind, trigger)
        else:
            self.bounds.pop(kind, None)

    def _queue(self, turns: LaneTurns, kind: int, trigger: int) -> None:
        entry = (trigger, kind)
        if entry not in turns.queued:
            turns.queued.add(entry)
            heappush(turns.later, entry)

    def _turns(self, kind: int) -> LaneTurns:
        lane = self._lane_of[kind]
        turns = self.lanes.get(lane)
        if turns is None:
            turns = self.lanes[lane] = LaneTurns()
        return turns
