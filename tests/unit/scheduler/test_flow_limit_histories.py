"""Histories of limits that compose (docs/flow-control.md), against a slow and obvious account of the items that are
out."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from unit.scheduler.test_flow_limits import CALLS, DOWNSTREAMS, NAMES, TENANTS
from unit.scheduler.test_scheduler_core import SIZES, WALL, core, flight, sent, tailer_of, worker_of

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind, Outcomes
from tailrace.scheduler.core import Core
from tailrace.scheduler.sessions import TailerSession, WorkerSession

KINDS = [
    Kind(name, rank, collection, tenant)
    for name in NAMES
    for rank in (0, 2, 3)
    for collection in ("", "x")
    for tenant in TENANTS
]


keys = st.sampled_from(
    [
        *({"function": name} for name in NAMES),
        *({"tenant": tenant} for tenant in TENANTS[1:]),
        *({"downstream": name} for name in DOWNSTREAMS),
        {"function": "a", "collection": "x"},
        {"function": "a", "tenant": "t"},
        {"downstream": "d", "tenant": "u"},
        {"per": "tenant"},
        {"function": "b", "per": "tenant"},
        {"downstream": "d", "per": "tenant"},
    ]
)


quotas = st.builds(
    lambda key, concurrency, rate, burst: Quota(
        concurrency=concurrency, rate=rate, burst=burst if rate else 0.0, **key
    ),
    keys,
    st.integers(0, 4),
    st.sampled_from([0.0, 0.0, 2.0, 20.0]),
    st.sampled_from([0.0, 3.0]),
)


def payers(quota: Quota, kind: Kind, all_quotas: dict[Any, Quota]) -> str | None:
    """An obvious account: what of a quota an item of a kind pays; None: nothing of it. `per` tells tenants apart."""
    if quota.function and quota.function != kind.function:
        return None
    if quota.downstream and quota.downstream not in CALLS[kind.function]:
        return None
    if quota.collection and quota.collection != kind.collection:
        return None
    if quota.tenant and quota.tenant != kind.tenant:
        return None
    if quota.per:
        own = (quota.function, "", kind.tenant, quota.downstream, "")
        return None if kind.tenant and own in all_quotas else kind.tenant
    return "all"


class Composed(RuleBasedStateMachine):
    """Two tailers and two workers of few slots; the model counts what is out and what started when."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1.0  # as a monotonic clock never is 0, which says "never" of a moment
        self.core: Core = core(lane_items=200)
        self.quotas: dict[Any, Quota] = {}
        self.out: dict[tuple[str, int], tuple[WorkerSession, int, Kind]] = {}
        self.starts: list[tuple[float, Kind]] = []
        self.set_at = 0.0
        self.number = 0
        self.pushed = 0

    @initialize(slots=st.integers(1, 12))
    def begin(self, slots: int) -> None:
        specs = [FunctionSpec(name, downstreams=CALLS[name]) for name in NAMES]
        self.workers = [worker_of(self.core, limit=slots, session=name) for name in ("w1", "w2")]
        self.core.apply([], [], specs, 1, 0.0)
        self.tailer: TailerSession = tailer_of(self.core)

    def step(self) -> None:
        self.core.turn(self.now, WALL)
        for worker in self.workers:
            for each in sent(self.core, worker, self.now):
                kind = worker.open[each][4]
                assert (worker.session, each) not in self.out
                self.out[worker.session, each] = (worker, each, kind)
                self.starts.append((self.now, kind))
        self.tailer.succeeded, self.tailer.ended = [], {}

    @rule(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=20))
    def push(self, kinds: list[Kind]) -> None:
        self.number += 1
        number = self.tailer.requests.send(self.now)
        self.core.push(self.tailer, flight(self.number, *kinds), number, SIZES.scheduler, self.now)
        self.step()

    @rule(quota=quotas)
    def set(self, quota: Quota) -> None:
        self.apply(quota)

    def apply(self, quota: Quota) -> None:
        self.quotas[quota.key] = quota
        if quota.empty:
            del self.quotas[quota.key]
        self.core.apply([], self.quotas.values(), [], 2, self.now)
        self.set_at, self.starts = self.now, []
        self.step()

    @rule(data=st.data(), bad=st.booleans())
    def report(self, data: st.DataObject, bad: bool) -> None:
        if not self.out:
            return
        names = data.draw(st.lists(st.sampled_from(sorted(self.out)), unique=True, min_size=1))
        for name in names:
            worker, each, _ = self.out.pop(name)
            outcomes = Outcomes([], {each: Ended(Outcome.FATAL, "no")}) if bad else Outcomes([each], {})
            self.core.report(worker, outcomes, self.now, WALL)
            self.core.report(worker, outcomes, self.now, WALL)  # said twice: it counts once
        self.step()

    @rule(seconds=st.sampled_from([0.05, 0.5, 1.5, 4.0]))
    def time(self, seconds: float) -> None:
        self.now += seconds
        number = self.tailer.requests.send(self.now)
        self.core.granted(self.tailer, number, SIZES.scheduler, list(self.tailer.held.flights))
        for worker in self.workers:
            self.core.lease_requested(worker, worker.granted.number + 1, self.now)
            self.core.grants(worker, self.now)
        self.core.tick(self.now, WALL)
        self.step()

    def paid(self, kind: Kind) -> set[tuple[Any, str]]:
        return {
            (key, value)
            for key, quota in self.quotas.items()
            if (value := payers(quota, kind, self.quotas)) is not None and (quota.concurrency or quota.rate)
        }

    @invariant()
    def what_is_taken_is_what_is_out(self) -> None:
        taken = Counter[tuple[Any, str]]()
        for _, _, kind in self.out.values():
            taken.update(self.paid(kind))
        charges = self.core.limits.charges
        counted = {limit.name: limit.running for limit in charges.all() if limit.running}
        assert sum(counted.values()) == sum(taken.values())
        for (key, value), count in taken.items():
            limits = {
                limit for kind in KINDS if (key, value) in self.paid(kind) for limit in charges.resolve(kind, 0.0)
            }
            assert any(limit.running == count for limit in limits)

    @invariant()
    def no_limit_is_passed(self) -> None:
        for limit in self.core.limits.charges.all():
            if limit.running > limit.concurrency:  # it was lowered below what ran: nothing more has started since
                paying = [kind for _, kind in self.starts if limit in self.core.limits.charges.resolve(kind, self.now)]
                assert not paying
        for key, quota in self.quotas.items():
            if not quota.rate:
                continue
            by_value: defaultdict[str, list[float]] = defaultdict(list)
            for at, kind in self.starts:
                value = payers(quota, kind, self.quotas)
                if value is not None:
                    by_value[value].append(at)
            for times in by_value.values():  # in any window that ends now, not only since the quota was set
                most = [quota.rate * (self.now - at) + max(1.0, quota.burst or quota.rate) for at in times]
                assert all(len(times) - first <= each + 1e-6 for first, each in enumerate(most)), key

    @invariant()
    def nothing_idles_that_could_run(self) -> None:
        """Checks that no slot and no limit is free while an item waits that has room everywhere."""
        if not hasattr(self, "tailer"):
            return
        room = sum(pool.room for worker in self.workers for pool in worker.pools.values())
        for function in self.core.roster.functions.values():
            for flow in function.all_flows:
                if flow.items and room:
                    held = [limit for limit in flow.charges if limit.room(self.now) <= 0 or limit.reserver]
                    assert held, f"{flow.kind} waits with room everywhere"

    def teardown(self) -> None:
        """Checks that everything has run, without limits, and once all that runs has ended."""
        self.core.apply([], [], [], 3, self.now)
        self.quotas, self.starts = {}, []
        self.step()
        for _ in range(400):
            for worker, each, _ in self.out.values():
                self.core.report(worker, Outcomes([each], {}), self.now, WALL)
            self.out.clear()
            self.step()
            if not self.out:
                break
        assert not any(flow.items for each in self.core.roster.functions.values() for flow in each.all_flows)
        assert not list(self.core.limits.charges.all())


TestComposed = Composed.TestCase
TestComposed.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
