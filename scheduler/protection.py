"""Protection of downstreams: the outcomes of items move the limits of the downstreams that their functions call (FL12
to FL16).

A limit comes into being when its downstream throttles for the first time, a budget when something of a function that
calls one fails; before that, and where nothing calls a downstream, nothing is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model.adaptive import USUAL, Adaptive
from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS, Ended, Outcomes
from .config import SchedulerConfig
from .intake import Intake
from .limits import Limits
from .outliers import Outliers
from .rules.adaptive import LOOK, REST, AdaptiveLimit, DownstreamState
from .rules.flow import FLOW, KIND, Flow, Item
from .rules.placement import WorkerPool
from .rules.retry_budget import RetryBudget
from .sessions import WorkerSession
from .sleep import Sleep

#: Tenants of one downstream that have a limit of their own there, where no quota says how many.
TENANTS = 1_000
#: Limits that are made one by one as they are wanted; beyond it all that are wanted together, once in so many seconds,
#: since running items are counted anew for it.
FEW, SELDOM = 20, 1.0
#: Outcomes which show that a downstream answered.
_ANSWERED = (Outcome.SUCCESS, Outcome.RETRY, Outcome.FATAL)
#: Names a downstream, and a tenant of it; empty: all of it.
_Key = tuple[str, str]


class Protection:
    """The adaptive limits and budgets of one scheduler.

    Invariants: `active` is true whenever one of them exists, is wanted, or a pool starts slowly; a limit is of a
    downstream that some function declares; of one downstream at most so many tenants have one, the rest share one.
    """

    def __init__(self, limits: Limits, intake: Intake, sleep: Sleep, config: SchedulerConfig) -> None:
        self.active = False
        self.adaptive: dict[_Key, AdaptiveLimit] = {}
        self.budgets: dict[str, RetryBudget] = {}
        self.throttled: Counter[str] = Counter()  # by downstream
        self.unknown: Counter[str] = Counter()  # by function: throttles that named what it does not declare
        self._limits = limits
        self._charges = limits.charges
        self._intake = intake
        self._sleep = sleep
        self._slow_start = config.slow_start
        self.outliers = Outliers(config.outlier_pause, intake.roster)
        self._wanted: dict[_Key, tuple[str, float | None]] = {}
        self._back: set[str] = set()
        self._failing: set[str] = set()
        self._probing: list[AdaptiveLimit] = []
        self._slow: dict[WorkerPool, float] = {}
        self._accounts: Counter[str] = Counter()  # tenants of a downstream that have, or are to have, a limit there
        self._look_at = self._make_at = 0.0
        self.next_at: float | None = None  # when `turn` has something to look at; None: not before something happens

    # ---- what is said

    def note(self, worker: WorkerSession, outcomes: Outcomes, now: float) -> None:
        """Takes ends of items there; they are still open, so that it is known when they started. A downstream that a
        throttle names and its function does not declare is taken out of it."""
        if self.outliers.note(worker, outcomes, now):
            self.active, self.next_at = True, self._look_at
        if self.adaptive and outcomes.succeeded:
            self._answered(worker, outcomes.succeeded, now)
        if not outcomes.ended:
            return
        if self.active:
            self.next_at = self._look_at
        outcomes_seen = {end.outcome for end in outcomes.ended.values()}
        if not (self.adaptive or Outcome.THROTTLED in outcomes_seen or Outcome.RETRY in outcomes_seen):
            return
        answered: list[int] = []
        for ref, end in outcomes.ended.items():
            item = worker.open.get(ref)
            if item is None:
                continue
            if end.outcome == Outcome.THROTTLED:
                self._throttled(item, end, worker.flights[ref >> INDEX_BITS].at, now)
            elif end.outcome in _ANSWERED:
                answered.append(ref)
                if end.outcome == Outcome.RETRY:
                    self._failed(item[KIND].function, now)
            else:
                self._unknown(item, None, worker.flights[ref >> INDEX_BITS].at, now)
        if self.adaptive and answered:
            self._answered(worker, answered, now)

    def came_back(self, functions: Iterable[str]) -> None:
        """Lets the share of downstreams rise slowly once the circuit breaker of functions that call them closed."""
        self._back.update(name for function in functions for name in self._charges.downstreams(function))
        if self._back:
            self.active, self.next_at = True, self._look_at

    def attached(self, worker: WorkerSession, now: float) -> bool:
        """Notes a worker that can take items and was not here before. Returns whether it starts slowly."""
        slow = [
            pool
            for pool in worker.pools.values()
            if self._slow_start and any(self._charges.downstreams(name) for name in pool.functions)
        ]
        for pool in slow:
            self._slow[pool] = now
            pool.admit(_share(0.0))
        if slow:
            self.active, self.next_at = True, self._look_at
        return bool(slow)

    def numbered(self, now: float) -> None:
        """Takes the numbers of limits and budgets anew after a change of quotas; those that are switched off go."""
        off = [key for key in self.adaptive if not self._numbers(key[0]).on]
        free = [name for name in self.budgets if self._part(name) >= 1]
        for key in off:
            del self.adaptive[key]
        for name in free:
            del self.budgets[name]
        if off or free:
            self._adapt(now)
        for name, budget in self.budgets.items():
            budget.part = self._part(name)
        for (downstream, _), limit in self.adaptive.items():
            limit.numbered(self._numbers(downstream), now)

    # ---- time

    def turn(self, now: float) -> bool:
        """Lets time pass. Returns whether something opened that was closed."""
        opened = False
        for limit in self._probing:
            if limit.look(now):
                self._sleep.roomy[limit] = None
        if now < self._look_at:
            return False
        self._look_at = now + LOOK
        self._make(now)
        for limit in self.adaptive.values():
            was_shut = limit.shut
            if limit.look(now):
                self._sleep.roomy[limit] = None
            opened = opened or (was_shut and not limit.shut)
        for budget in self.budgets.values():
            budget.look(now)
            if budget.sleepers:
                self._sleep.roomy[budget] = None
        self._probing = [limit for limit in self.adaptive.values() if limit.state is DownstreamState.PROBING]
        self._start_slowly(now)
        self.active = bool(self.adaptive or self.budgets or self._slow or self._wanted or self._back or self._failing)
        self.active = self.active or self.outliers.active
        looks = [at for limit in self.adaptive.values() if (at := limit.next_look(now)) is not None]
        if self.outliers.active:
            looks.append(self.outliers.next_look(now))
        if self._slow or self._wanted or any(budget.sleepers for budget in self.budgets.values()):
            looks.append(self._look_at)
        self.next_at = max(self._look_at, min(looks)) if looks else None
        return opened

    def _start_slowly(self, now: float) -> None:
        """Gives more to pools that came a moment ago, or are back in; an outlier gets nothing."""
        if self.outliers.active:
            for pool in self.outliers.turn(now):
                self._slow.setdefault(pool, now)
        for pool, since in list(self._slow.items()):
            if self.outliers.holds(pool):
                del self._slow[pool]
                continue
            share = _share((now - since) / self._slow_start) if self._slow_start else 1.0
            pool.admit(share)
            if share >= 1:
                del self._slow[pool]

    def tick(self, now: float) -> None:
        """Forgets limits and budgets that were quiet for long."""
        gone = [key for key, limit in self.adaptive.items() if limit.forgettable(now)]
        idle = [name for name, budget in self.budgets.items() if budget.forgettable(now)]
        if gone or idle:
            for key in gone:
                del self.adaptive[key]
            for name in idle:
                del self.budgets[name]
            self._adapt(now)

    # ---- steps

    def _answered(self, worker: WorkerSession, refs: Iterable[int], now: float) -> None:
        opened = worker.open
        known = [(ref, item[FLOW]) for ref in refs if (item := opened.get(ref)) is not None]
        for flow, count in Counter([flow for _, flow in known]).items():
            for limit in flow.charges:
                if isinstance(limit, AdaptiveLimit):
                    limit.passed(count, self._started(limit, worker, known), now)

    def _started(self, limit: AdaptiveLimit, worker: WorkerSession, known: list[tuple[int, Flow]]) -> float:
        """Time at which the last of these items that pay a limit started; it matters only to a probe."""
        if limit.state is not DownstreamState.PROBING:
            return 0.0
        return max(worker.flights[ref >> INDEX_BITS].at for ref, flow in known if limit in flow.charges)

    def _throttled(self, item: Item, end: Ended, started_at: float, now: float) -> None:
        kind = item[KIND]
        declared = self._charges.downstreams(kind.function)
        named = end.downstream or (declared[0] if len(declared) == 1 else "")
        if named not in declared:
            if end.downstream or declared:
                self.unknown[kind.function] += 1
            end.downstream = end.scope = ""
            return
        end.downstream = named
        self.throttled[named] += 1
        tenant = ""
        if end.scope:
            tenant = self._account(named, kind.tenant)
        key = (named, tenant)
        limit = self.adaptive.get(key)
        if limit is None:
            if self._numbers(named).on:
                self._wanted.setdefault(key, (end.reason, end.after))
                self.active, self.next_at = True, self._look_at
        else:
            limit.told(end.reason.partition("\n")[0][:200], end.after, started_at, now)
        self._unknown(item, limit, started_at, now)

    def _account(self, downstream: str, tenant: str) -> str:
        """The tenant whose limit a throttle of a tenant's account moves; REST for the shared one."""
        if not tenant or (downstream, tenant) in self.adaptive or (downstream, tenant) in self._wanted:
            return tenant or REST
        if self._accounts[downstream] >= self._most(downstream):
            return REST
        self._accounts[downstream] += 1
        return tenant

    def _most(self, downstream: str) -> int:
        quota = self._charges.quota(("", "", "", downstream, "tenant"))
        return (quota.max_values if quota is not None else 0) or TENANTS

    def _unknown(self, item: Item, told: AdaptiveLimit | None, started_at: float, now: float) -> None:
        """An end says nothing of the limits that it pays, but for the one that was told."""
        for limit in item[FLOW].charges:
            if isinstance(limit, AdaptiveLimit) and limit is not told:
                limit.unknown(started_at, now)

    def _failed(self, function: str, now: float) -> None:
        budget = self.budgets.get(function)
        if budget is not None:
            budget.failed(now)
        elif self._charges.downstreams(function):
            self._failing.add(function)
            self.active, self.next_at = True, self._look_at

    def _make(self, now: float) -> None:
        """Makes the limits and budgets that are wanted, all at once."""
        if not (self._wanted or self._back or self._failing) or now < self._make_at:
            return
        self._make_at = now + (SELDOM if len(self.adaptive) + len(self._wanted) > FEW else 0.0)
        for key, (why, after) in self._wanted.items():
            if not self._numbers(key[0]).on:  # an operator said so meanwhile
                continue
            self.adaptive[key] = limit = AdaptiveLimit(*key, self._numbers(key[0]), now)
            limit.told(why.partition("\n")[0][:200], after, now, now)
        for name in self._back:
            if (found := self.adaptive.get((name, ""))) is not None:
                found.ramp(now)
            elif self._numbers(name).on:
                self.adaptive[name, ""] = limit = AdaptiveLimit(name, "", self._numbers(name), now)
                limit.begin(now)
        for name in self._failing:
            if (part := self._part(name)) < 1:
                self.budgets[name] = RetryBudget(name, part, now)
        self._wanted, self._back, self._failing = {}, set(), set()
        self._adapt(now)

    def _adapt(self, now: float) -> None:
        self._accounts = Counter([name for name, tenant in self.adaptive if tenant not in ("", REST)])
        full = {name for name, count in self._accounts.items() if count >= self._most(name)}
        self._limits.adapt(self.adaptive, full, self.budgets, now)
        self._intake.forget_routes()  # items of other kinds may share a flow from now on

    def _part(self, function: str) -> float:
        """Which part of its first attempts retries of a function may be; 1: as many as there are."""
        return min([self._numbers(each).retries for each in self._charges.downstreams(function)], default=1.0)

    def _numbers(self, downstream: str) -> Adaptive:
        quota = self._charges.quota(("", "", "", downstream, ""))
        return (quota.adaptive if quota is not None else None) or USUAL


def _share(part: float) -> float:
    """The share of a slow start of which so much is over."""
    return min(1.0, 0.1 + 0.9 * part)
