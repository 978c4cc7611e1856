"""Dispatch: what waits goes to whoever can run it. Once per loop turn, in chunks; charges are per ⟨function, n⟩.

The steps, in order: rate and concurrency limits, fair turn between functions, priority within one, placement, and the
making of assignments, at most a flight's worth of items or about a mebibyte each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ..model.workload import FLIGHT_ITEMS, INDEX_BITS
from .roster import Able, RosterFunction
from .rules.fairness import quantum
from .rules.lanes import PAYLOAD, SESSION, Item, expired
from .rules.placement import WorkerPool, limit_of, place, room_of
from .rules.priority import split
from .sessions import Assignment, TailerSession, WorkerFlight, WorkerSession

#: An assignment is cut when its payloads come to this many bytes.
CUT_BYTES = 1 << 20


class Dispatch:
    """The state of the pick beyond the rules' own: who sleeps until a token comes, and whose turn the sets are.

    `over` is called with items whose time to start had passed when they were picked.
    """

    def __init__(self, low_share: float, over: Callable[[list[Item]], None]) -> None:
        self._low_share = low_share
        self._over = over
        self._sleeping: dict[RosterFunction, float] = {}
        self._first = 0
        self._now = 0.0
        self._wall = 0.0
        self._pools: list[WorkerPool] = []
        self._picked: list[Item] = []

    @property
    def next_at(self) -> float | None:
        """When the next sleeping function can start something."""
        return min(self._sleeping.values(), default=None)

    def turn(self, ables: list[Able], now: float, wall: float) -> set[WorkerSession]:
        """Starts all that may start. Returns the workers that have new assignments."""
        self._now, self._wall = now, wall
        if self._sleeping:
            for function in [function for function, at in self._sleeping.items() if at <= now]:
                del self._sleeping[function]
                wake(function)
        if not ables:
            return set()
        self._first = (self._first + 1) % len(ables)
        turns = [able for able in ables[self._first :] + ables[: self._first] if len(able.ring)]
        for able in turns:
            self._take_all(able, room_of(able.pools))
        while turns:
            rooms = [(able, room) for able in turns if len(able.ring) and (room := room_of(able.pools))]
            if not rooms:
                break
            weight = sum([able.ring.weight for able, _ in rooms])
            for able, _ in rooms:
                # Asked again: pools may be shared with the set that was just served.
                room = room_of(able.pools)
                if room:
                    able.ring.round(room, quantum(room / weight, limit_of(able.pools)), self._take)
                    picked, self._picked = self._picked, []
                    self._place(able, picked)
        return self._assign()

    def _take_all(self, able: Able, room: int) -> None:
        """When there is room for all that waits, nobody's turn matters: everything of unlimited functions goes."""
        ring = able.ring
        if len(ring) > room or sum([len(lane.items) for function in ring for lane in function.lanes]) > room:
            return
        items: list[Item] = []
        for function in ring.clear():
            if function.limited:
                ring.join(function)
                continue
            function.owed = 0.0
            for lane in function.lanes:
                if lane.dated:
                    items += self._not_expired(lane.take(len(lane.items)))
                elif lane.items:
                    items += lane.items
                    lane.items.clear()
        self._place(able, items)

    def _take(self, function: RosterFunction, offer: int) -> int:
        """One function's turn: at most `offer` items of it are picked."""
        if function.limited:
            offer = self._within_limits(function, offer)
            if not offer:
                return 0
        items = self._pick(function, offer)
        count = len(items)
        if function.limited:
            if function.concurrency is not None:
                function.concurrency.start(count)
            if function.bucket is not None:
                function.bucket.take(count)
        self._picked += items
        return count

    def _place(self, able: Able, items: list[Item]) -> None:
        """Items of functions that these pools can run, at most as many as they have room for."""
        count = len(items)
        if not count:
            return
        pools = able.pools
        start = 0
        for pool, number in [(pools[0], count)] if len(pools) == 1 else place(pools, count):
            if not pool.taken:
                self._pools.append(pool)
            pool.taken += items if number == count else items[start : start + number]
            pool.assigned += number
            start += number

    def _within_limits(self, function: RosterFunction, offer: int) -> int:
        """How many of the offer the function's limits allow; at 0 it leaves the ring until they change."""
        if function.concurrency is not None:
            offer = min(offer, function.concurrency.room)
        if offer and function.bucket is not None:
            offer = min(offer, function.bucket.available(self._now))
            if not offer:
                self._sleeping[function] = function.bucket.next_at()
        if not offer:
            function.waits = False
        return offer

    def _pick(self, function: RosterFunction, count: int) -> list[Item]:
        """The next items of one function by priority. Items past their expiry end on the way."""
        lanes = function.lanes
        picked: list[Item] = []
        while count:
            filled = [lane for lane in lanes if lane.items]
            if len(filled) == 1:
                function.owed = 0.0
                lane = filled[0]
                dated = lane.dated
                items = lane.take(count)
                function.waits = bool(lane.items)
            else:
                waiting = [len(lane.items) for lane in lanes]
                count = min(count, sum(waiting))
                numbers, function.owed = split(waiting, count, function.owed, self._low_share)
                dated = any(lane.dated for lane in filled)
                items = [item for lane, number in zip(lanes, numbers, strict=True) for item in lane.take(number)]
                function.waits = sum(waiting) > count
            if not dated:
                return picked + items if picked else items
            items = self._not_expired(items)
            picked += items
            count = count - len(items) if function.waits else 0
        return picked

    def _not_expired(self, items: list[Item]) -> list[Item]:
        """Ends the items whose time to start has passed; returns the others."""
        over = [item for item in items if expired(item, self._wall)]
        if not over:
            return items
        self._over(over)
        return [item for item in items if not expired(item, self._wall)]

    def _assign(self) -> set[WorkerSession]:
        """Makes assignments of what was placed in each pool."""
        pools, self._pools = self._pools, []
        for pool in pools:
            taken, pool.taken = pool.taken, []
            tailer = taken[0][SESSION]
            mine = [item for item in taken if item[SESSION] is tailer]
            if len(mine) == len(taken):
                _hand_out(pool, tailer, taken)
                continue
            by_tailer: defaultdict[TailerSession, list[Item]] = defaultdict(list)
            for item in taken:
                by_tailer[item[SESSION]].append(item)
            for tailer, items in by_tailer.items():
                _hand_out(pool, tailer, items)
        return {pool.worker for pool in pools}


def wake(function: RosterFunction) -> None:
    """A function may have something to start: it joins the ring of those who can run it."""
    if function.able is not None:
        function.able.ring.join(function)
    alone = function.alone
    if alone is not None and alone.able is not None and alone.waiting:
        alone.able.ring.join(alone)


def _hand_out(pool: WorkerPool, tailer: TailerSession, items: list[Item]) -> None:
    """Cuts items of one session into assignments of one pool, and registers them with the worker."""
    worker: WorkerSession = pool.worker
    sizes = [len(item[PAYLOAD]) for item in items]
    size = sum(sizes)
    if size <= CUT_BYTES and len(items) <= FLIGHT_ITEMS:
        cuts = [(items, size)]
    else:
        cuts = []
        start = size = 0
        for index, length in enumerate(sizes):
            if index > start and (size + length > CUT_BYTES or index - start == FLIGHT_ITEMS):
                cuts.append((items[start:index], size))
                start, size = index, 0
            size += length
        cuts.append((items[start:], size))
    for part, length in cuts:
        worker.last_flight += 1
        number = worker.last_flight
        base = number << INDEX_BITS
        worker.open.update(zip(range(base, base + len(part)), part, strict=False))
        worker.flights[number] = WorkerFlight(tailer, pool, len(part))
        worker.assignments.append(Assignment(number, tailer, pool, part, length))
