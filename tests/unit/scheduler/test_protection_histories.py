"""Protection of downstreams under random histories of the whole core: against an account of the items that are out
(FL3, FL12 to FL16)."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from unit.scheduler.test_scheduler_core import SIZES, WALL, core, sent, tailer_of

from tailrace.model.adaptive import Adaptive
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Flight, Kind, Outcomes
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.adaptive import DownstreamState
from tailrace.scheduler.rules.flow import FLOW, KIND
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import WorkerSession
from tailrace.scheduler.view import inspect

CALLS = {"a": ("d",), "b": ("d", "e"), "c": ()}
KINDS = [Kind(name, rank, "", tenant) for name in CALLS for rank in (0, 3) for tenant in ("", "t", "u", "v")]
QUOTAS = [
    Quota(downstream="d", concurrency=3),
    Quota(downstream="d", adaptive=Adaptive(floor=2.0, ceiling=40.0, slow_start=0.0, retries=0.5)),
    Quota(downstream="d", adaptive=Adaptive(on=False)),
    Quota(downstream="d", per="tenant", rate=50.0, max_values=1),
    Quota("a", rate=20.0),
    Quota(per="tenant", weight=2.0),
]
ends = st.one_of(
    st.just(None),
    st.builds(
        lambda downstream, after, scope: Ended(Outcome.THROTTLED, "429", after, downstream=downstream, scope=scope),
        st.sampled_from(["d", "d", "e", "", "x"]),
        st.sampled_from([None, None, 0.0, 0.5, 3.0, 1000.0, math.inf, math.nan, -1.0]),
        st.sampled_from(["", "", "tenant"]),
    ),
    st.sampled_from(
        [Ended(Outcome.RETRY, "no"), Ended(Outcome.FATAL, "no"), Ended(Outcome.LOST, "gone", crashed=True)]
    ),
)


class Protected(RuleBasedStateMachine):
    """A tailer and two workers; the model knows what was pushed, is out and ended."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1.0
        self.core: Core = core(lane_items=500, slow_start=1.0)
        self.specs = [FunctionSpec(name, downstreams=CALLS[name]) for name in CALLS]
        self.core.apply([], [], self.specs, 1, self.now)
        self.tailer = tailer_of(self.core, self.now)
        self.workers: list[WorkerSession] = []
        self.out: dict[tuple[str, int], int] = {}
        self.pushed: set[int] = set()
        self.over: Counter[int] = Counter()
        self.number = self.renewals = 0
        self.version = 1

    @initialize(slots=st.integers(1, 30))
    def begin(self, slots: int) -> None:
        self.slots = slots
        self.workers = [self.attach("w1"), self.attach("w2")]

    def attach(self, name: str) -> WorkerSession:
        worker = self.core.attach_worker(name, name, self.now)
        pools = [PoolLimits("p", tuple(CALLS), self.slots, self.slots)]
        self.core.worker_connected(worker, self.specs, pools, self.now)
        return worker

    def step(self) -> None:
        before = {
            limit: limit.ended + limit.running
            for limit in self.core.protection.adaptive.values()
            if limit.state is DownstreamState.CLOSED and self.now < limit.until
        }
        self.core.turn(self.now, WALL)
        for worker in self.workers:
            for ref, (_, theirs) in sent(self.core, worker, self.now).items():
                assert theirs not in self.out.values(), "handed out twice"
                self.out[worker.session, ref] = theirs
        for theirs in [*self.tailer.succeeded, *self.tailer.ended]:
            self.over[theirs] += 1
            assert self.over[theirs] == 1, "ended twice"
        self.tailer.succeeded, self.tailer.ended = [], {}
        for limit, started in before.items():
            if limit.state is DownstreamState.CLOSED:
                assert limit.ended + limit.running <= started, "it started although its downstream is closed"

    @rule(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=30), attempt=st.integers(1, 3))
    def push(self, kinds: list[Kind], attempt: int) -> None:
        self.number += 1
        ids = [f"{self.number}-{index}" for index in range(len(kinds))]
        attempts = [1 + (attempt - 1) * (index % 2) for index in range(len(kinds))]
        flight = Flight(self.number, self.number, kinds, ids, [b""] * len(ids), attempts)
        request = self.tailer.requests.send(self.now)
        self.core.push(self.tailer, flight, request, SIZES.scheduler, self.now)
        self.pushed |= {self.number << 10 | index for index in range(len(kinds))}
        self.step()

    @rule(quotas=st.lists(st.sampled_from(QUOTAS), unique_by=lambda quota: quota.key))
    def set(self, quotas: list[Quota]) -> None:
        self.version += 1
        self.core.apply([], quotas, [], self.version, self.now)
        self.step()

    @rule(downstreams=st.sampled_from([(), ("d",), ("e", "d")]))
    def declare(self, downstreams: tuple[str, ...]) -> None:
        self.version += 1
        quotas = list(self.core.limits.charges._quotas.values())
        self.core.apply([], quotas, [FunctionSpec("c", downstreams=downstreams)], self.version, self.now)
        self.step()

    @rule(data=st.data(), end=ends)
    def report(self, data: st.DataObject, end: Ended | None) -> None:
        if not self.out:
            return
        for name in data.draw(st.lists(st.sampled_from(sorted(self.out)), unique=True, min_size=1, max_size=20)):
            del self.out[name]
            session, ref = name
            outcomes = Outcomes([ref], {}) if end is None else Outcomes([], {ref: end})
            self.core.report(self.core.workers[session], outcomes, self.now, WALL)
        self.step()

    @rule(which=st.integers(0, 1), unsent=st.booleans())
    def lose(self, which: int, unsent: bool) -> None:
        """Loses a worker for good, with all that it has and was not sent yet, and attaches another one."""
        if unsent:
            self.core.turn(self.now, WALL)
        gone, self.renewals = self.workers[which], self.renewals + 1
        self.core.forget_worker(gone, self.now)
        self.out = {name: theirs for name, theirs in self.out.items() if name[0] != gone.session}
        self.workers[which] = self.attach(f"w{self.renewals}-{which}")
        self.step()

    @rule(data=st.data())
    def wait_for_other_work(self, data: st.DataObject) -> None:
        if self.out:
            session, ref = data.draw(st.sampled_from(sorted(self.out)))
            self.core.waits(self.core.workers[session], [ref], [], self.now)
            self.step()
            self.core.waits(self.core.workers[session], [], [ref], self.now)
            self.step()

    @rule(seconds=st.sampled_from([0.01, 0.1, 0.3, 1.0, 4.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.renew()
        self.core.tick(self.now, WALL)
        self.step()

    def renew(self) -> None:
        self.renewals += 1
        request = self.tailer.requests.send(self.now)
        self.core.granted(self.tailer, request, SIZES.scheduler, range(self.number + 1))
        for worker in self.workers:
            self.core.lease_requested(worker, self.renewals, self.now)
            self.core.grants(worker, self.now)

    @invariant()
    def what_is_taken_is_what_is_out(self) -> None:
        charges = self.core.limits.charges
        taken = Counter(
            limit
            for worker in self.workers
            for ref, item in worker.open.items()
            if ref not in worker.parents
            for limit in item[FLOW].charges
        )
        for limit in charges.all():
            assert limit.running == taken[limit], limit.name
        if charges.any:
            for worker in self.workers:
                for item in worker.open.values():
                    assert item[FLOW] in item[FLOW].function.flows.values(), item[KIND]

    @invariant()
    def limits_are_within_their_bounds(self) -> None:
        for (name, _), limit in self.core.protection.adaptive.items():
            quota = self.core.limits.charges.quota(("", "", "", name, ""))
            numbers = (quota.adaptive if quota is not None else None) or Adaptive()
            assert numbers.on
            if limit.allowed < math.inf:
                assert limit.allowed >= numbers.floor and limit.allowed <= (numbers.ceiling or math.inf)
            assert limit.until <= self.now + 300.0
        assert len([tenant for _, tenant in self.core.protection.adaptive if tenant]) <= 2 * 4
        inspect(self.core, "s", self.now, WALL)

    def teardown(self) -> None:
        """Asserts that all is well in the end: everything that waits starts, and ends."""
        for _ in range(2000):
            waiting = sum([len(room.items) for each in self.core.roster.functions.values() for room in each.rooms])
            if not waiting and not self.out:
                break
            for session, ref in list(self.out):
                del self.out[session, ref]
                self.core.report(self.core.workers[session], Outcomes([ref], {}), self.now, WALL)
            self.now = max(self.now + 0.05, min(self.core.next_at or math.inf, self.now + 2.0))
            self.renew()
            self.core.tick(self.now, WALL)
            self.step()
        assert not self.out
        assert set(self.over) == self.pushed, "something is left"


Protected.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestProtected = Protected.TestCase
