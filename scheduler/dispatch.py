"""Dispatch: waiting items go to workers that can run them. Once per loop turn, in chunks; charges are per ⟨flow, n⟩.

The steps, in order: limits that have room wake the flows that sleep on them; each set of pools looks at its fresh
flows; where there is room for all of them no turn matters, else they wait in turns (function, rank, tenant); a flow
starts as many as each of its charges has room for, or sleeps on the one that has none; placement; and the making of
assignments, at most a flight's worth of items or about a mebibyte each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import chain
from operator import attrgetter

from ..model.workload import FLIGHT_ITEMS, INDEX_BITS
from .limits import Limits
from .roster import Able
from .rules.cost import FIRST
from .rules.estimate import charge, fitting
from .rules.flow import FLOW, PAYLOAD, SESSION, Flow, Item, expired
from .rules.limit import Limit, take_all
from .rules.placement import WorkerPool, limit_of, place, room_of, slots_of, taken_of
from .rules.reserve import opportunistic_slots
from .rules.turns import HALVING, Turns
from .rules.unit_limit import UnitLimit
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

    `ceiling` is the part of all slots that opportunistic functions may fill up. `over` is called with items whose time
    to start had passed when they were picked.
    """

    def __init__(self, sleep: Sleep, limits: Limits, ceiling: float, over: Callable[[list[Item]], None]) -> None:
        self._ceiling = ceiling
        self._sleep = sleep
        self._limits = limits
        self._over = over
        self._first = 0
        self._now = 0.0
        self._wall = 0.0
        self._pools: list[WorkerPool] = []
        self._taken: list[Item] = []
        self._contended = -1.0
        self._measuring = False

    @property
    def next_at(self) -> float | None:
        """Time at which the next limit has a token for a flow that sleeps on it, or former workers had their time to
        come back."""
        if self._now < self._limits.rejoining_until:
            return self._limits.rejoining_until
        return self._sleep.next_at

    def turn(self, ables: list[Able], now: float, wall: float) -> set[WorkerSession]:
        """Starts all that may start. Returns the workers that have new assignments."""
        self._now, self._wall, self._measuring = now, wall, self._limits.measuring
        if now < self._limits.rejoining_until and self._limits.charges.bounds_running:
            return set()
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
                if able.fresh or able.turns.size or able.idle.size:
                    self._serve(able)
            if not sleep.roomy or not sleep.wake(now):
                break
        if self._limits.metering and now - self._contended > HALVING and not self._limits.sharing:
            self._limits.metering = False
        return self._assign()

    def _serve(self, able: Able) -> None:
        """Lets flows of one set of pools start, as many items as these have room for."""
        room = room_of(able.pools)
        turns, fresh, now = able.turns, able.fresh, self._now
        sharing = self._limits.sharing
        if room and not sharing and not turns.size and sum([len(flow.items) for flow in fresh]) <= room:
            able.fresh = []
            self._start_all(able, fresh)
            return
        if not self._limits.metering and self._limits.charges.weighed:
            self._limits.meter(now)
        self._contended = now
        if not room:
            return  # who is fresh waits where it is
        able.fresh = []
        metering = self._limits.metering
        for flow in fresh:
            if metering and (flow.running or flow.presumed or flow.ended > flow.counted):
                self._limits.settle(flow, now)
            (able.idle if flow.function.opportunistic else turns).add(flow, now)
        most = max(1, min(CHUNK, limit_of(able.pools) // CHUNK_PART))
        if sharing:
            self._serve_shared(able, room, most)
            self._give_back(fresh, room > len(self._taken))
        else:
            turns.serve(room, most, now, self._start)
        self._place_taken(able)

    def _serve_shared(self, able: Able, room: int, most: int) -> None:
        """Serves flows where there are reserves, or opportunistic functions (FL18): first flows below their reserve;
        then all in turns, in slots that are not kept for a reserve; then, in idle slots up to the ceiling, the
        opportunistic ones."""
        turns, now = able.turns, self._now
        if turns.reserving:
            room -= turns.serve_reserved(room, most, now, self._start)
        if not turns.size and not able.idle.size:
            return
        slots, busy = slots_of(able.pools), taken_of(able.pools) + len(self._taken)
        kept = self._limits.kept(able)
        if turns.size:
            free = min(room, int(slots - kept) - busy) if kept else room
            before = len(self._taken)
            turns.serve(free, most, now, self._start)
            busy += len(self._taken) - before
            room -= len(self._taken) - before
        if able.idle.size and not turns.size:
            able.idle.serve(min(room, opportunistic_slots(self._ceiling, slots - kept) - busy), most, now, self._start)

    def _give_back(self, fresh: list[Flow], room: bool) -> None:
        """Takes their shares of limits from flows that were woken and not served, since they may wait long: from those
        that are opportunistic, and where there is `room` left, from all, since that is kept from them."""
        for flow in fresh:
            if flow.woken_by is not None and (room or flow.function.opportunistic):
                self._sleep.tried(flow)

    def _start_all(self, able: Able, flows: list[Flow]) -> None:
        """Starts all flows where there is room for all that waits, so nobody's turn matters; charges do, of all flows
        together unless one of them has no room for all."""
        limits = self._limits
        blocked = self._sleep.blocked
        odd = [flow for flow in flows if flow.dated or flow in blocked]
        if odd:
            flows = [flow for flow in flows if not (flow.dated or flow in blocked)]
        if self._measuring:
            odd += [flow for flow in flows if flow.measured]
            flows = [flow for flow in flows if not flow.measured]
        if limits.any:
            wanted = _wanted(flows)
            if lacking := take_all(wanted, self._now):
                full = set(lacking)
                odd += [flow for flow in flows if not full.isdisjoint(flow.charges)]
                flows = [flow for flow in flows if full.isdisjoint(flow.charges)]
                take_all(_wanted(flows), self._now)  # of the others each had room for more
        if limits.metering:
            for flow in flows:
                self._metered(flow, len(flow.items))
        taken = self._taken
        for flow in flows:
            flow.queued = False
            taken += flow.items
            flow.items.clear()
        if odd:
            odd.sort(key=_RANK)
            for flow in odd:
                flow.queued = False
                started = self._start(flow, len(flow.items))
                if started and limits.metering:
                    self._metered(flow, started)
                flow.queued = flow.asleep is not None
                if flow.items and not flow.queued:
                    wake(flow)
        self._place_taken(able)

    def _metered(self, flow: Flow, started: int) -> None:
        """Counts items of a flow that started out of turn."""
        for metered in (flow, flow.function):
            metered.start(started, self._now)
            metered.presumed += started * (metered.mean or FIRST)

    def _start(self, flow: Flow, count: int) -> int:  # noqa: PLR0912 - the hot path
        """Starts up to `count` items of a flow, as far as its charges have room; where none has, it sleeps there, and
        waits again there where it took its share. Returns how many did."""
        now, sleep, charges = self._now, self._sleep, flow.charges
        woken = flow.woken_by
        if woken is not None:
            count = min(count, sleep.tried(flow))
        blocked = None
        for limit in charges:
            if now > limit.at:
                limit.refill(now)
            room = limit.concurrency - limit.running
            if room > limit.tokens:
                room = int(limit.tokens)
            if limit.reserver is not None and limit.reserver is not flow and flow.rank >= limit.reserver.rank:
                room = limit.beside(room)
            if room < count:
                count, blocked = room, limit
        measured = self._measuring and flow.measured
        if measured and count > 0:
            fit, lacking = self._fit(flow, count, woken)
            if lacking is not None:
                count, blocked = fit, lacking
        if count <= 0:
            if blocked is not None:
                sleep.on(flow, blocked, now)
            return 0
        items = flow.items
        if count < len(items):
            taken = items[:count]
            del items[:count]
        else:
            taken = items
            flow.items = []
        if flow.dated:
            taken = self._not_expired(taken)
            flow.dated = bool(flow.items)
        if measured:
            taken = charge(flow, taken, now)
        self._taken += taken
        started = len(taken)
        for limit in charges:
            limit.running += started
            limit.tokens -= started
        if flow.since and started:
            sleep.started(flow)
        if flow.items:
            if blocked is not None:
                sleep.on(flow, blocked, now)
            elif woken is not None:
                sleep.again(flow, woken, now)
        return started

    def _fit(self, flow: Flow, count: int, woken: Turns | None) -> tuple[int, UnitLimit | None]:
        """Number of the first items that all unit limits have enough for, and the limit that has not. A flow that is
        not woken waits behind those that sleep there, so that small items do not eat up what a large one waits for."""
        if not flow.reserves and not (woken is not None and isinstance(woken.of, UnitLimit)):
            for limit in flow.measured:
                if limit.waiting:
                    self._sleep.roomy[limit] = None
                    return 0, limit
        return fitting(flow, count, self._now)

    def _place_taken(self, able: Able) -> None:
        """Gives the taken items to these pools, which can run them and have room for them."""
        if self._taken:
            taken, self._taken = self._taken, []
            self._place(able, taken)

    def _place(self, able: Able, items: list[Item]) -> None:
        """Places items of functions that these pools can run, at most as many as they have room for."""
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
        """Makes assignments of the items that were placed in each pool."""
        pools, self._pools = self._pools, []
        for pool in pools:
            taken, pool.taken = pool.taken, []
            tailer = taken[0][SESSION]
            mine = [item for item in taken if item[SESSION] is tailer]
            if len(mine) == len(taken):
                _hand_out(pool, tailer, taken, self._now)
                continue
            by_tailer: defaultdict[TailerSession, list[Item]] = defaultdict(list)
            for item in taken:
                by_tailer[item[SESSION]].append(item)
            for tailer, items in by_tailer.items():
                _hand_out(pool, tailer, items, self._now)
        return {pool.worker for pool in pools}


def _wanted(flows: list[Flow]) -> Mapping[Limit, int]:
    """Number of items of all these flows that pay each limit."""
    return Counter(chain.from_iterable([item[FLOW].charges for flow in flows for item in flow.items]))


def wake(flow: Flow) -> None:
    """Notes that a flow may have something to start: the pools that can run it look at it."""
    if not flow.queued and flow.function.able is not None:
        flow.queued = True
        flow.function.able.fresh.append(flow)


def _hand_out(pool: WorkerPool, tailer: TailerSession, items: list[Item], now: float) -> None:
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
        worker.flights[number] = WorkerFlight(tailer, pool, len(part), now)
        worker.assignments.append(Assignment(number, tailer, pool, part, length))
