"""The roster: the functions, the pools that can run each, and the credit that follows from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..model.demand import Cell
from ..model.function_spec import FunctionSpec
from ..model.limits import Quota
from ..model.priority import Priority
from .rules.cost import Metered
from .rules.credit import LEAST_CELL, cell_limit, session_total, steady
from .rules.flow import EXTRA, Flow, Item, Room
from .rules.misfit import willing
from .rules.placement import WorkerPool
from .rules.share import FIRST_CHOICE
from .rules.turns import Turns, clamp_weight
from .rules.unit_limit import Averages
from .sessions import WorkerSession

LEVELS = len(Priority)
#: Parts of one function for items that some versions of it refused.
MOST_OTHERS = 16


class RosterFunction(Metered):
    """One function: its flows, its quota, and the pools that can run it.

    `alone` is the same function as far as its items must run alone (suspects): flows, turns and pools are its own, the
    charges are shared. It has no `alone` itself. `others` are likewise for items that some versions of it refused, by
    those.
    """

    def __init__(self, name: str, now: float, *, alone: bool = False) -> None:
        self.alone = None if alone else RosterFunction(name, now, alone=True)
        self.others: dict[frozenset[str], RosterFunction] = {}
        self.name = name
        self.levels = LEVELS
        self.flows: dict[tuple[Any, ...], Flow] = {}  # by kind; of retries with a mark behind it
        self.dated = False  # an item with an expiry may wait in one of its flows
        self.asking = Room()  # while frozen: the items that would be the next probe
        self.frozen = False
        self.able: Able | None = None
        self.quota: Quota | None = None
        self.weight = 1.0
        self.averages: Averages = {} if self.alone is None else self.alone.averages  # what its runs used of units
        self.opportunistic = False  # it has what all others leave idle (FL18)
        self.gone_since: float | None = now  # when its last worker went; None: it has one
        self.spare = 0  # how much of `capacity` is for what waits for other work
        self.capacity = 0  # what its pools can hold, or could when it last had any
        self.choice = 0  # credit beyond that, so that turns have a choice (FL21)

    @property
    def waiting(self) -> int:
        """Items in its flows."""
        return sum([len(flow.items) for flow in self.flows.values()])

    @property
    def parts(self) -> list[RosterFunction]:
        """Itself, and its parts for items that run apart."""
        return [self, *([] if self.alone is None else [self.alone]), *self.others.values()]

    @property
    def all_flows(self) -> list[Flow]:
        """The function's flows, and those of items that run apart."""
        return [flow for part in self.parts for flow in part.flows.values()]

    @property
    def rooms(self) -> list[Room]:
        """Everywhere that an item of it may wait."""
        return [*self.all_flows, self.asking]

    def part(self, item: Item) -> RosterFunction:
        """Itself, or its part for items that run apart, where the item must."""
        extra = item[EXTRA]
        if extra is None or self.alone is None:
            return self
        return self.alone if extra.alone else self.others.get(extra.refused, self)

    def limit(self, quota: Quota | None) -> None:
        """Replaces the quota; None: none."""
        self.quota = quota
        self.weight = clamp_weight(quota.weight if quota else 0.0)
        opportunistic = quota is not None and quota.opportunistic
        if opportunistic is not self.opportunistic:
            self.opportunistic = opportunistic
            if self.able is not None:  # it waits among others from now on
                able, self.able = self.able, None
                self._wait_for(able, able)
        for part in self.parts[1:]:
            part.limit(quota)

    def ready(self, able: Able | None) -> None:
        """Notes that these pools can run it from now on; its waiting items are looked at."""
        before = self.able
        if able is before:
            return
        self._wait_for(before, able)

    def _wait_for(self, before: Able | None, able: Able | None) -> None:
        self.able = able
        if before is not None:
            before.drop(self)
        for flow in self.flows.values():
            if flow.asleep is not None and before in flow.asleep.sleepers:
                flow.asleep.sleepers[before].drop(self)
            flow.queued = False
            flow.asleep = None
            if flow.woken_by is not None:
                flow.woken_by.woken -= flow.share
                flow.woken_by = None
            if able is not None and flow.items:
                flow.queued = True
                able.fresh.append(flow)


class Able:
    """The pools that can run some functions alike; the flows of those functions that wait for room in them, in turns;
    and those that are fresh: not looked at yet. Invariant: a flow that waits is in one of both, or asleep on a limit,
    and is `queued` then."""

    __slots__ = ("fresh", "idle", "pools", "turns")

    def __init__(self, pools: tuple[WorkerPool, ...], share: float) -> None:
        self.pools = pools
        self.turns = Turns(share)
        self.idle = Turns(share)  # of the opportunistic ones
        self.fresh: list[Flow] = []

    def drop(self, function: RosterFunction) -> None:
        """Other pools run this function from now on."""
        self.turns.drop(function)
        self.idle.drop(function)
        self.fresh = [flow for flow in self.fresh if flow.function is not function]


class Roster:
    """The functions, and the pools that can run them. Invariant after `rebuild`: a function's `able` names exactly the
    pools of able workers that can run it, and is None when there is none; functions with the same pools share one Able.
    What runs alone has pools that are for that alone; without any, it goes where all others go."""

    def __init__(self, lane_items: int, low_share: float = 0.05) -> None:
        self._low_share = low_share
        self._lane_items = lane_items
        self.choosing = False  # flows take turns by weight and cost, and need a choice
        self.functions: dict[str, RosterFunction] = {}
        self.specs: dict[str, FunctionSpec] = {}
        self.ables: list[Able] = []

    def function(self, name: str, now: float) -> RosterFunction:
        """The function of that name; it is made when it was never heard of."""
        found = self.functions.get(name)
        if found is None:
            found = self.functions[name] = RosterFunction(name, now)
        return found

    def announce(self, specs: Iterable[FunctionSpec], now: float) -> dict[str, FunctionSpec]:
        """Takes note of functions; returns those that are new or changed."""
        fresh = {spec.name: spec for spec in specs if self.specs.get(spec.name) != spec}
        self.specs.update(fresh)
        for name in fresh:
            self.function(name, now)
        return fresh

    def rebuild(self, workers: Iterable[WorkerSession], now: float) -> None:
        """Works out anew which pools can run which function, after workers came, went or changed their pools."""
        able: dict[str, list[WorkerPool]] = {}
        alone: dict[str, list[WorkerPool]] = {}
        for worker in workers:
            for pool in worker.pools.values() if worker.able else ():
                for name in pool.functions if pool.able else ():
                    (alone if pool.alone else able).setdefault(name, []).append(pool)
        former = {each.pools: each for each in self.ables}
        sets: dict[tuple[WorkerPool, ...], Able] = {}

        def able_of(pools: tuple[WorkerPool, ...]) -> Able | None:
            if pools and pools not in sets:
                sets[pools] = former.get(pools) or Able(pools, self._low_share)
            return sets.get(pools)

        for name in able:
            self.function(name, now)
        for name, function in self.functions.items():
            pools = tuple(able.get(name, ()))
            apart = tuple(alone.get(name, pools))
            function.ready(able_of(pools))
            if function.alone is not None:
                function.alone.ready(able_of(apart))
            for refused, other in function.others.items():
                other.ready(able_of(willing(pools, name, refused)))
            if pools:
                function.gone_since = None
                function.capacity = sum(pool.full + pool.spare for pool in pools)
                function.spare = sum(pool.spare for pool in pools)
            else:
                function.gone_since = now if function.gone_since is None else function.gone_since
        self.ables = list(sets.values())

    def set_apart(self, name: str, refused: frozenset[str], now: float) -> None:
        """Makes a part of a function for items that these versions of it refused, if there is none."""
        function = self.functions.get(name)
        if function is None or refused in function.others:
            return
        if len(function.others) >= MOST_OTHERS:
            function.others = {key: part for key, part in function.others.items() if part.waiting}
            if len(function.others) >= MOST_OTHERS:
                return
        other = function.others[refused] = RosterFunction(name, now, alone=True)
        other.averages = function.averages
        other.limit(function.quota)
        if function.able is not None:
            pools = willing(function.able.pools, name, refused)
            able = next((each for each in self.ables if each.pools == pools), None)
            if able is None:
                able = Able(pools, self._low_share)
                self.ables.append(able)
            other.ready(able)

    def credit(
        self,
        workers: Iterable[WorkerSession],
        sessions: int,
        bound: int,
        grace: float,
        now: float,
        dropped: Collection[str] = (),
    ) -> tuple[dict[Cell, int], int]:
        """Every cell's limit for one session, and its total. A function keeps its cells for `grace` seconds after its
        last worker went; of one that is `dropped` items are pushed without any, so that they are dropped."""
        pools = [pool for worker in workers if worker.able for pool in worker.pools.values()]
        capacity = sum(pool.full + pool.spare for pool in pools if not pool.alone)
        least = FIRST_CHOICE if self.choosing else 0
        choice = max(least, sum([function.choice for function in self.functions.values()]))
        total = session_total(capacity, bound, choice)
        share = steady(sessions)
        cells = {}
        for name, function in self.functions.items():
            gone = function.gone_since
            if gone is not None and now - gone >= grace:
                function.capacity = 0
            room = (function.spare, max(least, function.choice))
            capacity = max(function.capacity, LEAST_CELL) if name in dropped else function.capacity
            limit = cell_limit(capacity, total, self._lane_items, share, function.quota, *room)
            if limit:
                for level in range(LEVELS):
                    cells[Cell(name, level)] = limit
        return cells, total


def spend_spare(pools: Iterable[WorkerPool]) -> bool:
    """Lets credit for items that waited fall, behind them and not with each that goes on. Returns whether any fell."""
    fallen = [pool for pool in pools if pool.spare > steady(pool.parents)]
    for pool in fallen:
        pool.spare = steady(pool.parents)
    return bool(fallen)
