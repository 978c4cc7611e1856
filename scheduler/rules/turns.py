"""Turns: who is next among flows that wait for the same thing, by weight and cost (FL7, FL8).

Functions take turns by virtual time (start-time fair queueing): the one that was charged least, divided by its weight,
is next. Within a function the rank decides (ranks.py), within a rank the flow that was charged least by the weight of
its tenant, then the one that came first. A flow that comes after a pause is owed nothing; one that had too much stays
in debt, which halves every ten seconds and is bounded to one window.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from .cost import FIRST
from .flow import Flow
from .ranks import Ranks
from .reserve import entitled

#: Weights beyond these are taken as these.
LIGHTEST, HEAVIEST = 0.01, 100.0
#: Seconds: the time in which a debt halves, and the slot-seconds that it may come to for a weight of one.
HALVING = 10.0
WINDOW = 10.0

_RANK = attrgetter("rank")


def clamp_weight(weight: float) -> float:
    """A weight within its bounds; 0 means 1."""
    return min(HEAVIEST, max(LIGHTEST, weight or 1.0))


class TurnNode:
    """A function among turns: its flows by rank, and what it was charged. `left_at` is when it last had nothing;
    `waiting` are the ranks that have flows, most urgent first."""

    __slots__ = ("clocks", "flows", "function", "left_at", "queued", "ranks", "v", "waiting", "weight")

    def __init__(self, function: Any, levels: int, weight: float) -> None:
        self.function = function
        self.weight = weight
        self.v = 0.0
        self.left_at = 0.0
        self.queued = False  # it has a key among the functions
        self.ranks = Ranks(levels)
        self.waiting: list[int] = []
        self.flows: list[list[tuple[float, int, Flow]]] = [[] for _ in range(levels)]  # heaps, by virtual time
        self.clocks = [0.0] * levels


class Turns:
    """Flows in turns. Invariants: a flow is in it once; `size` counts them; a key in a heap is never above the virtual
    time of what it stands for by more than was given back since."""

    __slots__ = ("_entitled", "_heap", "_nodes", "_number", "_share", "_tenants", "_v", "of", "size", "woken")

    def __init__(self, share: float, of: Any = None) -> None:
        self.of = of  # the limit that they sleep on
        self._share = share  # of a function's starts, for its lower ranks together
        self._nodes: dict[Any, TurnNode] = {}
        self._heap: list[tuple[float, int, TurnNode]] = []
        self._tenants: dict[str, int] = {}
        self._number = 0
        self._v = 0.0
        self._entitled: dict[Flow, None] = {}  # those that have reserves, in turns of their own
        self.size = 0
        self.woken = 0  # items of those that left because there was room, and were not tried yet

    def __len__(self) -> int:
        return self.size

    @property
    def reserving(self) -> bool:
        """Whether a flow that has a reserve waits."""
        return bool(self._entitled)

    @property
    def waiting(self) -> Iterator[Flow]:
        """The flows in turns, in no order."""
        for node in self._nodes.values():
            for rank in node.waiting:
                for entry in node.flows[rank]:
                    yield entry[2]

    @property
    def functions(self) -> int:
        """Number of functions that take turns, about."""
        return len(self._heap)

    def add(self, flow: Flow, now: float) -> None:
        """Adds a flow that waits for its turn."""
        function = flow.function
        node = self._nodes.get(function)
        if node is None:
            node = self._nodes[function] = TurnNode(function, function.levels, function.weight)
            node.v = self._v
        if not node.waiting:
            node.weight = function.weight
            if not node.queued or now > node.left_at:
                node.v = _rejoined(node.v, self._v, now - node.left_at)
            if not node.queued:
                node.queued = True
                self._number += 1
                heapq.heappush(self._heap, (node.v, self._number, node))
        rank = flow.rank
        flows = node.flows[rank]
        if not flows:
            insort(node.waiting, rank)
        clock = node.clocks[rank]
        if flow.v < clock:
            flow.v = clock
        elif flow.v > clock + WINDOW:
            flow.v = clock + WINDOW
        self._number += 1
        heapq.heappush(flows, (flow.v, self._number, flow))
        tenants, tenant = self._tenants, flow.kind.tenant
        tenants[tenant] = tenants.get(tenant, 0) + 1
        self.size += 1
        if flow.reserves_of:
            self._entitled[flow] = None

    def serve_reserved(self, room: int, most: int, now: float, start: Callable[[Flow, int], int]) -> int:
        """Serves, before all others, the flows that are below a reserve (FL18), as `serve` does. Returns how many items
        started."""
        left = room
        rounds = [flow for flow in self._entitled if entitled(flow.reserves_of, now)]
        rounds.sort(key=_RANK)
        while left > 0 and rounds:
            again = []
            for flow in rounds:
                if left <= 0:
                    break
                started = start(flow, min(len(flow.items), most, left))
                left -= started
                self._took_reserved(flow, started, now)
                if flow.items and flow.asleep is None:
                    if started and entitled(flow.reserves_of, now):
                        again.append(flow)
                    continue
                self.remove(flow)
                flow.queued = flow.asleep is not None
                if not self._nodes[flow.function].waiting:
                    self._nodes[flow.function].left_at = now
            rounds = again
        return room - left

    def _took_reserved(self, flow: Flow, started: int, now: float) -> None:
        function, node = flow.function, self._nodes[flow.function]
        mean = function.mean or FIRST
        own = started * (flow.mean or mean)
        for metered, cost in ((function, started * mean), (flow, own)):
            metered.start(started, now)
            metered.presumed += cost
        for reserve in flow.reserves_of:
            reserve.take(own)
        node.v += started * mean / node.weight
        flow.v += own * (1 if flow.own else self._tenants[flow.kind.tenant]) / flow.weight

    def serve(self, room: int, most: int, now: float, start: Callable[[Flow, int], int]) -> None:
        """Takes turns until so many items started or nobody is left: of each function at once an even part of the room
        or `most`, within it of each flow an even part. `start` starts up to so many of a flow and says how many did; a
        flow that sleeps then, or has nothing left, is in turns no more.

        It is `next`, `took` and `add` written out, since it is done for each flow that starts anything.
        """
        heap, tenants = self._heap, self._tenants
        while room > 0 and self.size:
            node = self.next_function()
            waiting, function = node.waiting, node.function
            quantum = min(room, max(most, room // len(heap)))
            part = max(1, quantum // len(node.flows[waiting[0]]))
            while quantum > 0 and waiting:
                rank, bound = node.ranks.next(waiting) if len(waiting) > 1 else (waiting[0], 0)
                flows = node.flows[rank]
                key, number, flow = flows[0]
                if flow.v > key:
                    heapq.heapreplace(flows, (flow.v, number, flow))
                    continue
                node.clocks[rank] = max(node.clocks[rank], key)
                count = min(len(flow.items), part, quantum, bound or quantum)
                started = start(flow, count)
                if started:
                    room -= started
                    quantum -= started
                    mean = function.mean or FIRST
                    cost, own = started * mean, started * (flow.mean or mean)
                    moment = started * now
                    function.running += started
                    function.area -= moment
                    function.presumed += cost
                    flow.running += started
                    flow.area -= moment
                    flow.presumed += own
                    if flow.reserves_of:
                        for reserve in flow.reserves_of:
                            reserve.take(own)
                    node.v += cost / node.weight
                    flow.v += own * (1 if flow.own else tenants[flow.kind.tenant]) / flow.weight
                    if len(waiting) > 1:
                        node.ranks.started(rank, started, waiting, self._share)
                if flow.items and flow.asleep is None:
                    self._number += 1
                    flow.v = min(flow.v, node.clocks[rank] + WINDOW)
                    heapq.heapreplace(flows, (flow.v, self._number, flow))
                    continue
                flow.queued = flow.asleep is not None
                if flow.reserves_of:
                    self._entitled.pop(flow, None)
                heapq.heappop(flows)
                self.size -= 1
                self._left(flow.kind.tenant)
                if not flows:
                    waiting.remove(rank)
                    if not waiting:
                        node.left_at = now

    def next(self) -> tuple[TurnNode, Flow, int]:
        """The flow whose turn it is, as `next_of` says it, with its node. There must be one."""
        node = self.next_function()
        return (node, *self.next_of(node))

    def next_function(self) -> TurnNode:
        """The function whose turn it is; it stays in its place, and is charged by `took`. There must be one."""
        heap = self._heap
        while True:
            v, number, node = heap[0]
            if not node.waiting:
                node.queued = False
                heapq.heappop(heap)
            elif node.v > v:
                heapq.heapreplace(heap, (node.v, number, node))
            else:
                self._v = max(self._v, v)
                return node

    def next_of(self, node: TurnNode) -> tuple[Flow, int]:
        """The flow of a function whose turn it is, out of its place, and how many items of it may go (0: no bound). The
        caller gives it back by `add` if it still waits."""
        waiting = node.waiting
        rank, bound = node.ranks.next(waiting) if len(waiting) > 1 else (waiting[0], 0)
        flows = node.flows[rank]
        while True:
            key, number, flow = flows[0]
            if flow.v > key:
                heapq.heapreplace(flows, (flow.v, number, flow))
                continue
            break
        heapq.heappop(flows)
        self._entitled.pop(flow, None)
        if not flows:
            waiting.remove(rank)
        node.clocks[rank] = max(node.clocks[rank], key)
        self.size -= 1
        return flow, bound

    def give_back(self, node: TurnNode, flow: Flow) -> None:
        """Puts the flow that `next` gave back in its place: it is first of its rank again."""
        flows = node.flows[flow.rank]
        if not flows:
            insort(node.waiting, flow.rank)
        heapq.heappush(flows, (flow.v, -1, flow))
        if flow.reserves_of:
            self._entitled[flow] = None
        self.size += 1

    def next_above(self, rank: int) -> tuple[TurnNode, Flow, int] | None:
        """The next flow, as `next` gives it, among the ranks above this one; None: there is none. Slow: it looks
        everywhere."""
        for node in self._nodes.values():
            if node.waiting and node.waiting[0] < rank:
                flows = node.flows[node.waiting[0]]
                self.size -= 1
                flow = heapq.heappop(flows)[2]
                self._entitled.pop(flow, None)
                if not flows:
                    del node.waiting[0]
                return node, flow, 0
        return None

    def remove(self, flow: Flow) -> None:
        """Takes out one flow, wherever it stands."""
        self._entitled.pop(flow, None)
        flows = self._nodes[flow.function].flows[flow.rank]
        flows[:] = [entry for entry in flows if entry[2] is not flow]
        heapq.heapify(flows)
        if not flows:
            self._nodes[flow.function].waiting.remove(flow.rank)
        self.size -= 1
        self._left(flow.kind.tenant)

    def took(self, node: TurnNode, flow: Flow, count: int, cost: float, now: float, own_cost: float = 0.0) -> None:
        """Charges a turn: `count` items that cost so many slot-seconds (`own_cost`: by the flow's own average), 0 if it
        could not start. To be said before the flow is added again."""
        turns = self._left(flow.kind.tenant)
        waiting = node.waiting
        if count:
            node.v += cost / node.weight
            flow.v += (own_cost or cost) * (1 if flow.own else turns) / flow.weight
            if len(waiting) > 1 or (waiting and waiting[0] != flow.rank):
                ranks = waiting if flow.rank in waiting else sorted((*waiting, flow.rank))
                node.ranks.started(flow.rank, count, ranks, self._share)
        if not waiting:
            node.left_at = now

    def _left(self, tenant: str) -> int:
        """Notes that a flow of a tenant left. Returns how many it had."""
        tenants = self._tenants
        had = tenants[tenant]
        if had > 1:
            tenants[tenant] = had - 1
        else:
            del tenants[tenant]
        return had

    def correct(self, function: Any, excess: float) -> None:
        """Corrects a function that was charged so many slot-seconds too little."""
        if (node := self._nodes.get(function)) is not None:
            node.v += excess / node.weight

    def drop(self, function: Any) -> None:
        """Removes the flows of a function, which wait for something else now."""
        node = self._nodes.pop(function, None)
        if node is None:
            return
        for flow in [flow for flow in self._entitled if flow.function is function]:
            del self._entitled[flow]
        for flows in node.flows:
            self.size -= len(flows)
            for _, _, flow in flows:
                self._left(flow.kind.tenant)
            flows.clear()
        node.waiting.clear()


def _rejoined(v: float, clock: float, pause: float) -> float:
    """The virtual time of a flow or function that comes back after so many seconds: a debt halves, no credit is saved
    up (FL8)."""
    if v <= clock:
        return clock
    return clock + min(WINDOW, (v - clock) * math.pow(0.5, pause / HALVING))
