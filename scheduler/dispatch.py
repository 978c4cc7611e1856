"""Dispatch: what waits goes to whoever can run it. Once per loop turn, in chunks; charges are per ⟨flow, n⟩.

The steps, in order: limits that have room wake who sleeps on them; each set of pools looks at its fresh flows; where
there is room for all of them nobody's turn matters, else they wait in turns (function, rank, tenant); a flow starts as
many as each of its charges has room for, or sleeps on the one that has none; placement; and the making of assignments,
at most a flight's worth of items or about a mebibyte each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from operator import attrgetter

from ..model.workload import FLIGHT_ITEMS, INDEX_BITS
from .limits import Limits
from .roster import Able
from .rules.cost import Meter
from .rules.flow import PAYLOAD, SESSION, Flow, Item, expired
from .rules.limit import Limit
from .rules.placement import WorkerPool, limit_of, place, room_of
from .rules.turns import HALVING
from .sessions import Assignment, TailerSession, WorkerFlight, WorkerSession
from .sleep import Sleep

#: An assignment is cut when its payloads come to this many bytes.
CUT_BYTES = 1 << 20
#: A turn may be this many items even when room is scarce, so that picking costs little, but no more than this part of
#: what the pools can hold, so that a few slow functions in a small installation still alternate item by item.
CHUNK = 16
CHUNK_PART = 128

_RANK = attrgetter("rank")


class Dispatch:
    """The state of the pick beyond the rules' own: whose turn the sets are, and until when costs are counted.

    `over` is called with items whose time to start had passed when they were picked.
    """

    def __init__(self, sleep: Sleep, limits: Limits, over: Callable[[list[Item]], None]) -> None:
        self._sleep = sleep
        self._limits = limits
        self._over = over
        self._first = 0
        self._now = 0.0
        self._wall = 0.0
        self._pools: list[WorkerPool] = []
        self._contended = -1.0

    @property
    def next_at(self) -> float | None:
        """When the next limit has a token for who sleeps on it."""
        return self._sleep.next_at

    def turn(self, ables: list[Able], now: float, wall: float) -> set[WorkerSession]:
        """Starts all that may start. Returns the workers that have new assignments."""
        self._now, self._wall = now, wall
        sleep = self._sleep
        sleep.tokens(now)
        if sleep.roomy:
            sleep.wake(now)
        if not ables:
            return set()
        if len(ables) > 1:
            self._first = (self._first + 1) % len(ables)
            ables = ables[self._first :] + ables[: self._first]
        while True:
            for able in ables:
                if able.fresh or able.turns.size:
                    self._serve(able)
            if not sleep.roomy or not sleep.wake(now):
                break
        if self._limits.metering and now - self._contended > HALVING:
            self._limits.metering = False
        return self._assign()

    def _serve(self, able: Able) -> None:
        """Lets flows of one set of pools start, as many items as these have room for."""
        room = room_of(able.pools)
        fresh, able.fresh = able.fresh, []
        if not able.turns.size and sum([len(flow.items) for flow in fresh]) <= room:
            self._start_all(able, fresh)
            return
        if not self._limits.metering:
            self._limits.meter(self._now)
        self._contended = now = self._now
        turns = able.turns
        for flow in fresh:
            if (meter := flow.meter) is not None:
                flow.v = max(0.0, flow.v + meter.settle(now) / flow.weight)
            turns.add(flow, now)
        if room:
            self._take_turns(able, room)

    def _start_all(self, able: Able, flows: list[Flow]) -> None:
        """There is room for all that waits, so nobody's turn matters; charges do."""
        items: list[Item] = []
        if self._limits.any:
            flows.sort(key=_RANK)
        for flow in flows:
            count = len(flow.items)
            flow.queued = False
            if not count:
                self._sleep.tried(flow)
            elif flow.charges or self._limits.metering:
                taken = self._start(flow, count)[0]
                items += taken
            elif flow.dated:
                items += self._not_expired(flow.take(count))
            else:
                items += flow.items
                flow.items.clear()
        if items:
            self._place(able, items)

    def _take_turns(self, able: Able, room: int) -> None:
        """Functions in turns, each with an even part of the room or a chunk; within it its flows, each with a part."""
        turns, now, sleep = able.turns, self._now, self._sleep
        most = max(1, min(CHUNK, limit_of(able.pools) // CHUNK_PART))
        items: list[Item] = []
        while room > 0 and turns.size:
            node = turns.next_function()
            quantum = min(room, max(most, room // turns.functions))
            part = max(1, quantum // len(node.flows[node.waiting[0]]))
            while quantum > 0 and node.waiting:
                flow, bound = turns.next_of(node)
                count = min(len(flow.items), part, quantum)
                if bound:
                    count = min(count, bound)
                flow.queued = False
                if count:
                    taken, cost, own = self._start(flow, count)
                    started = len(taken)
                    room -= started
                    quantum -= started
                    items += taken
                    turns.took(node, flow, started, cost, now, own)
                else:
                    sleep.tried(flow)
                    turns.took(node, flow, 0, 0.0, now)
                if flow.items and not flow.queued:
                    flow.queued = True
                    turns.add(flow, now)
        if items:
            self._place(able, items)

    def _start(self, flow: Flow, count: int) -> tuple[list[Item], float, float]:
        """Starts up to `count` items of a flow, as far as its charges have room; where none has, it sleeps there, and
        waits again there where it took its share. Returns the items, and what they cost the function and the flow."""
        now, sleep = self._now, self._sleep
        charges = flow.charges
        woken = flow.woken_by
        if woken is not None:
            count = min(count, sleep.tried(flow))
        blocked = None
        if charges:
            count, blocked = room_for(flow, count, now)
        if count <= 0 and blocked is not None:
            sleep.on(flow, blocked, now)
            return [], 0.0, 0.0
        if flow.dated:
            taken = self._not_expired(flow.take(count))
        else:
            taken = flow.take(count)
        started = len(taken)
        for limit in charges:
            limit.start(started)
        cost = own = 0.0
        if self._limits.metering:
            meter = flow.meter
            if meter is None:
                meter = flow.meter = Meter(now)
            cost, own = flow.function.meter.start(started, now), meter.start(started, now)
        if flow.since and started:
            sleep.started(flow)
        if blocked is not None and flow.items:
            sleep.on(flow, blocked, now)
        elif woken is not None and flow.items:
            sleep.again(flow, woken, now)
        return taken, cost, own

    def _place(self, able: Able, items: list[Item]) -> None:
        """Items of functions that these pools can run, at most as many as they have room for."""
        count = len(items)
        pools = able.pools
        start = 0
        for pool, number in [(pools[0], count)] if len(pools) == 1 else place(pools, count):
            if not pool.taken:
                self._pools.append(pool)
            pool.taken += items if number == count else items[start : start + number]
            pool.assigned += number
            start += number

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


def room_for(flow: Flow, count: int, now: float) -> tuple[int, Limit | None]:
    """How many of `count` items each charge of a flow has room for, and the limit that lets no more start."""
    blocked = None
    for limit in flow.charges:
        room = limit.room(now)
        reserver = limit.reserver
        if reserver is not None and reserver is not flow and flow.rank >= reserver.rank:
            room = 0
        if room < count:
            count, blocked = room, limit
    return count, blocked


def wake(flow: Flow) -> None:
    """A flow may have something to start: whoever can run it looks at it."""
    if not flow.queued and flow.function.able is not None:
        flow.queued = True
        flow.function.able.fresh.append(flow)


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
