"""Sleep: flows whose charge has no room sleep on that limit, and are woken by it (FL3 to FL5).

A limit that has room again (an end, a token, a reservation that is over) is `roomy` until the flows that sleep on it
were woken: as many as it has room for, in turns, each with its share of the room. More are woken when those were tried.
"""

from __future__ import annotations

import heapq
import math

from .rules.cost import FIRST
from .rules.estimate import filling, needs, sharing
from .rules.flow import Flow
from .rules.limit import Limit
from .rules.turns import Turns
from .rules.unit_limit import UnitLimit

#: Seconds that a flow waits before it reserves its limits, that it keeps them at most, and between two looks for such.
PATIENCE, KEEPS, LOOK = 2.0, 5.0, 0.5


class Sleep:
    """The flows that sleep. Invariants: a flow that sleeps is in the sleepers of `asleep`, by who can run it; `blocked`
    has the flows that a limit keeps waiting, the longest first; a limit has at most one reserver, which reserves all
    its own."""

    def __init__(self, share: float) -> None:
        self.roomy: dict[Limit, None] = {}
        self.blocked: dict[Flow, None] = {}
        self._share = share
        self._timers: list[tuple[float, int, Limit]] = []
        self._armed: dict[Limit, float] = {}
        self._number = 0
        self._look_at = 0.0

    @property
    def next_at(self) -> float | None:
        """Time at which time alone changes something here; None: never."""
        timers = self._timers
        at = timers[0][0] if timers else None
        if not self.blocked:
            return at
        return self._look_at if at is None else min(at, self._look_at)

    def tokens(self, now: float) -> None:
        """Wakes limits that have a token by now; flows that waited too long reserve their limits."""
        timers = self._timers
        while timers and timers[0][0] <= now:
            at, _, limit = heapq.heappop(timers)
            if self._armed.get(limit) == at:
                del self._armed[limit]
                self.roomy[limit] = None
        if self.blocked and now >= self._look_at:
            self._look_at = now + LOOK
            self._look(now)

    def on(self, flow: Flow, limit: Limit, now: float) -> None:
        """Lets a flow sleep on a limit that has no room for it."""
        flow.queued = True
        flow.asleep = limit
        if not flow.since:
            flow.since = now
            if not self.blocked:
                self._look_at = now + LOOK
            self.blocked[flow] = None
        able = flow.function.able
        turns = limit.sleepers.get(able)
        if turns is None:
            turns = limit.sleepers[able] = Turns(self._share, limit)
        turns.add(flow, now)
        if isinstance(limit, UnitLimit):
            first = len(limit.sleepers) == 1 and turns.size == 1
            limit.need = needs(flow, limit) if first else min(limit.need, needs(flow, limit))
        self._arm(limit)

    def again(self, flow: Flow, turns: Turns, now: float) -> None:
        """Lets a flow that took its share and has more wait there again for its next."""
        limit: Limit = turns.of
        self.on(flow, limit, now)
        self.roomy[limit] = None

    def tried(self, flow: Flow) -> int:
        """Notes that a woken flow is tried now. Returns its share."""
        turns: Turns | None = flow.woken_by
        if turns is not None:
            flow.woken_by = None
            turns.woken -= flow.share
            if turns.size:
                self.roomy[turns.of] = None
        return flow.share

    def started(self, flow: Flow) -> None:
        """Notes that a limit keeps this flow waiting no longer: it started something, or has nothing left."""
        flow.since = 0.0
        self.blocked.pop(flow, None)
        if flow.reserves:
            self._release(flow)

    def wake(self, now: float) -> bool:
        """Wakes flows that sleep on roomy limits. Returns whether there were any."""
        woke = False
        roomy, self.roomy = self.roomy, {}
        for limit in roomy:
            if not limit.sleepers:
                continue
            if isinstance(limit, UnitLimit):
                woke |= self._wake_measured(limit, now)
                continue
            room = limit.room(now)
            if room <= 0:
                self._arm(limit)
                continue
            for able, turns in list(limit.sleepers.items()):
                if limit.reserver is None:
                    woke |= self._wake(turns, room, now)
                else:
                    woke |= self._wake_despite(limit, turns, now)
                    woke |= self._wake(turns, limit.beside(room), now)
                if not turns.size and not turns.woken:
                    del limit.sleepers[able]
        return woke

    def tick(self) -> None:
        """Looks at every limit now and then, whatever was said or not (FL11)."""
        for flow in list(self.blocked):
            if flow.asleep is not None:
                self.roomy[flow.asleep] = None
            elif not flow.items:
                self.started(flow)

    def clear(self) -> None:
        """Forgets all sleepers and reservations, for other limits from now on."""
        for flow in self.blocked:
            flow.since = flow.reserves = 0.0
        self.blocked.clear()
        self.roomy.clear()
        self._timers.clear()
        self._armed.clear()

    def _wake(self, turns: Turns, room: int, now: float) -> bool:
        """Plans how many items each flow may start of the room of a limit, in turns, and wakes these flows."""
        room -= turns.woken
        part = max(1, room // max(1, turns.size))
        plan: dict[Flow, int] = {}
        while room > 0 and turns.size:
            node, flow, bound = turns.next()
            had = plan.get(flow, 0)
            count = min(part, room, len(flow.items) - had, bound or room)
            turns.took(node, flow, count, count * (flow.function.mean or FIRST), now)
            plan[flow] = had + count
            room -= count
            if len(flow.items) > had + count:
                turns.add(flow, now)
        woke = False
        for flow, count in plan.items():
            if len(flow.items) > count:
                turns.remove(flow)
            flow.share = count
            woke |= self._rouse(flow, turns)
        return woke

    def _wake_measured(self, limit: UnitLimit, now: float) -> bool:
        """Wakes the flow that is next in turn at a unit limit, once there is enough of it for its first item; no other
        overtakes it meanwhile. It may start as many more items as fit an even part, then the next flow is woken."""
        held, need, woke = limit.holds(now), math.inf, False
        for able, turns in list(limit.sleepers.items()):
            part, plan = held / max(1, turns.size), list[tuple[Flow, int]]()
            while turns.size and not turns.woken:
                node, flow, _ = turns.next()
                if flow.items and not limit.enough(held, wanted := needs(flow, limit)):
                    turns.give_back(node, flow)
                    need = min(need, wanted)
                    break
                count, amount = sharing(flow, limit, part)
                turns.took(node, flow, count, count * (flow.function.mean or FIRST), now)
                held -= amount
                plan.append((flow, count))
            for flow, count in plan:
                flow.share = count
                woke |= self._rouse(flow, turns)
            if not turns.size and not turns.woken:
                del limit.sleepers[able]
        limit.need = need
        self._arm(limit)
        return woke

    def _wake_despite(self, limit: Limit, turns: Turns, now: float) -> bool:
        """Wakes flows at a reserved limit: the flow that reserved it, and the ranks above."""
        reserver: Flow = limit.reserver
        woke = False
        if reserver.asleep is limit and limit.sleepers.get(reserver.function.able) is turns:
            turns.remove(reserver)
            reserver.share = len(reserver.items)
            woke = self._rouse(reserver, turns)
        while (found := turns.next_above(reserver.rank)) is not None:
            node, flow, _ = found
            flow.share = len(flow.items)
            turns.took(node, flow, 0, 0.0, now)
            woke |= self._rouse(flow, turns)
        return woke

    def _rouse(self, flow: Flow, turns: Turns) -> bool:
        flow.asleep = None
        if not flow.items or flow.function.able is None:
            flow.queued = False
            self.started(flow)
            return False
        flow.woken_by = turns
        turns.woken += flow.share
        flow.function.able.fresh.append(flow)
        return True

    def _arm(self, limit: Limit) -> None:
        at = limit.next_at()
        if at is not None and self._armed.get(limit) != at:
            self._armed[limit] = at
            self._number += 1
            heapq.heappush(self._timers, (at, self._number, limit))

    def _look(self, now: float) -> None:
        """Lets flows that waited too long reserve all their limits, the longest first. A flow that kept them too long
        lays them down, and waits anew; no flow reserves those for as long, else flows that cannot start for an hour
        would keep in turns the limits that others need."""
        for flow in list(self.blocked):
            if now - flow.since < PATIENCE:
                break
            if flow.reserves:
                if now - flow.reserves >= KEEPS + filling(flow):
                    self._release(flow)
                    for limit in flow.charges:
                        limit.unreserved_until = now + KEEPS
                    flow.since = now
                    self.blocked[flow] = self.blocked.pop(flow)
            elif flow.asleep is not None and flow.items and _may_reserve(flow, now):
                flow.reserves = now
                for limit in flow.charges:
                    limit.reserver = flow
                self.roomy[flow.asleep] = None

    def _release(self, flow: Flow) -> None:
        flow.reserves = 0.0
        for limit in flow.charges:
            if limit.reserver is flow:
                limit.reserver = None
                self.roomy[limit] = None


def _may_reserve(flow: Flow, now: float) -> bool:
    """Whether it waits for several limits, all of which it may reserve."""
    return max(len(flow.charges), len(flow.measured)) > 1 and all(
        limit.reserver is None and limit.reservable and now >= limit.unreserved_until for limit in flow.charges
    )
