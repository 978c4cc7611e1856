"""The roster: which functions there are, which pools can run each, and the credit that follows from it."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.demand import Cell
from ..model.function_spec import FunctionSpec
from ..model.limits import Quota
from ..model.priority import Priority
from .rules.credit import cell_limit, session_total, steady
from .rules.fairness import Ring, Turn, clamp_weight
from .rules.lanes import EXTRA, KIND, Item, Lane
from .rules.placement import WorkerPool
from .rules.quota import Concurrency
from .rules.rate_limit import TokenBucket
from .sessions import WorkerSession

LEVELS = len(Priority)


class RosterFunction(Turn):
    """One function: its lanes by priority, its limits, and who can run it.

    `alone` is the same function as far as its items must run alone (suspects): lanes, turns and pools are its own, the
    limits are shared. It has no `alone` itself.
    """

    __slots__ = (
        "able",
        "alone",
        "asking",
        "bucket",
        "capacity",
        "concurrency",
        "frozen",
        "gone_since",
        "lanes",
        "limited",
        "name",
        "owed",
        "quota",
        "spare",
    )

    def __init__(self, name: str, lane_items: int, now: float, *, alone: bool = False) -> None:
        super().__init__()
        self.alone = None if alone else RosterFunction(name, lane_items, now, alone=True)
        self.name = name
        self.lanes = [Lane(lane_items) for _ in range(LEVELS)]
        self.asking = Lane(lane_items)  # while frozen: the items that would be the next probe
        self.frozen = False
        self.able: Able | None = None
        self.quota: Quota | None = None
        self.bucket: TokenBucket | None = None
        self.concurrency: Concurrency | None = None
        self.limited = False
        self.owed = 0.0
        self.gone_since: float | None = now  # when its last worker went; None: it has one
        self.spare = 0  # how much of `capacity` is for what waits for other work
        self.capacity = 0  # what its pools can hold, or could when it last had any

    @property
    def waiting(self) -> int:
        """Items in its lanes."""
        return sum([len(lane.items) for lane in self.lanes])

    @property
    def rooms(self) -> list[Lane]:
        """Everywhere that an item of it may wait."""
        return [*self.lanes, self.asking, *(self.alone.lanes if self.alone is not None else ())]

    def lane(self, item: Item) -> Lane:
        """The lane of an item."""
        extra = item[EXTRA]
        lanes = self.alone.lanes if self.alone is not None and extra is not None and extra.alone else self.lanes
        return lanes[item[KIND].priority]

    def put(self, item: Item) -> None:
        """An item is last in its lane."""
        lane = self.lane(item)
        lane.items.append(item)
        lane.dated = lane.dated or item[EXTRA] is not None

    def limit(self, quota: Quota | None, running: int, now: float) -> None:
        """Other limits from now on; `running` is how many of it are out. No quota: no limits."""
        self.quota = quota
        self.weight = clamp_weight(quota.weight if quota else 0.0)
        if quota is None or not quota.concurrency:
            self.concurrency = None
        else:
            self.concurrency = Concurrency(quota.concurrency, running)
        if quota is None or not quota.rate:
            self.bucket = None
        elif self.bucket is None:
            self.bucket = TokenBucket(quota.rate, quota.burst, now)
        else:
            self.bucket.change(quota.rate, quota.burst, now)
        self.limited = self.concurrency is not None or self.bucket is not None
        if self.alone is not None:
            self.alone.share(self)

    def share(self, whole: RosterFunction) -> None:
        """The limits of `whole` hold for both together."""
        self.quota, self.weight = whole.quota, whole.weight
        self.concurrency, self.bucket, self.limited = whole.concurrency, whole.bucket, whole.limited

    def ready(self, able: Able | None) -> None:
        """These pools can run it from now on; what waits joins their turns."""
        self.able = able
        if able is not None and self.waiting:
            able.ring.join(self)


class Able:
    """The pools that can run some functions alike, and the turns of those functions."""

    __slots__ = ("pools", "ring")

    def __init__(self, pools: tuple[WorkerPool, ...]) -> None:
        self.pools = pools
        self.ring: Ring[RosterFunction] = Ring()


class Roster:
    """The functions, and the pools that can run them. Invariant after `rebuild`: a function's `able` names exactly the
    pools of able workers that can run it, and is None when there is none; functions with the same pools share one Able.
    What runs alone has pools that are for that alone; without any, it goes where all others go."""

    def __init__(self, lane_items: int) -> None:
        self._lane_items = lane_items
        self.functions: dict[str, RosterFunction] = {}
        self.specs: dict[str, FunctionSpec] = {}
        self.ables: list[Able] = []

    def function(self, name: str, now: float) -> RosterFunction:
        """The function of that name; it is made when it was never heard of."""
        found = self.functions.get(name)
        if found is None:
            found = self.functions[name] = RosterFunction(name, self._lane_items, now)
        return found

    def announce(self, specs: Iterable[FunctionSpec], now: float) -> dict[str, FunctionSpec]:
        """Takes note of functions; returns those that are new or changed."""
        fresh = {spec.name: spec for spec in specs if self.specs.get(spec.name) != spec}
        self.specs.update(fresh)
        for name in fresh:
            self.function(name, now)
        return fresh

    def rebuild(self, workers: Iterable[WorkerSession], now: float) -> None:
        """Workers came, went or changed their pools."""
        able: dict[str, list[WorkerPool]] = {}
        alone: dict[str, list[WorkerPool]] = {}
        for worker in workers:
            for pool in worker.pools.values() if worker.able else ():
                for name in pool.functions:
                    (alone if pool.alone else able).setdefault(name, []).append(pool)
        for former in self.ables:
            former.ring.clear()
        sets: dict[tuple[WorkerPool, ...], Able] = {}
        for name in able:
            self.function(name, now)
        for name, function in self.functions.items():
            pools = tuple(able.get(name, ()))
            apart = tuple(alone.get(name, pools))
            function.ready(sets.setdefault(pools, Able(pools)) if pools else None)
            if function.alone is not None:
                function.alone.ready(sets.setdefault(apart, Able(apart)) if apart else None)
            if pools:
                function.gone_since = None
                function.capacity = sum(pool.limit + pool.spare for pool in pools)
                function.spare = sum(pool.spare for pool in pools)
            else:
                function.gone_since = now if function.gone_since is None else function.gone_since
        self.ables = list(sets.values())

    def credit(
        self, workers: Iterable[WorkerSession], sessions: int, bound: int, grace: float, now: float
    ) -> tuple[dict[Cell, int], int]:
        """Every cell's limit for one session, and its total. A function keeps its cells for `grace` seconds after its
        last worker went."""
        pools = [pool for worker in workers if worker.able for pool in worker.pools.values()]
        capacity = sum(pool.limit + pool.spare for pool in pools if not pool.alone)
        total = session_total(capacity, bound)
        share = steady(sessions)
        cells = {}
        for name, function in self.functions.items():
            gone = function.gone_since
            if gone is not None and now - gone >= grace:
                function.capacity = 0
            limit = cell_limit(function.capacity, total, self._lane_items, share, function.quota, function.spare)
            if limit:
                for level in range(LEVELS):
                    cells[Cell(name, level)] = limit
        return cells, total
