"""Protection of downstreams in the whole core, over minutes of its own time (docs/flow-control.md, FL12 to FL16)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from unit.scheduler.test_scheduler_core import SIZES, WALL, core, sent, tailer_of

from tailrace.model.adaptive import Adaptive
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import INDEX_BITS, Ended, Flight, Kind, Outcomes
from tailrace.scheduler.rules.flow import ATTEMPT, KIND
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.view import explain

CALLS = {"a": ("d",), "b": ("d",), "c": ("d", "e"), "free": ()}
#: How an item of this kind and attempt ends; None: well.
Verdict = Callable[[Kind, int], Ended | None]


def throttled(downstream: str = "d", after: float | None = None, scope: str = "") -> Ended:
    return Ended(Outcome.THROTTLED, "429", after, downstream=downstream, scope=scope)


class Bucket:
    """A downstream that takes `capacity` calls a second."""

    def __init__(self, world: World, capacity: float) -> None:
        self.world, self.capacity = world, capacity
        self.tokens, self.at = 1.0, world.now
        self.calls: list[tuple[float, bool]] = []

    def __call__(self, kind: Kind, attempt: int) -> Ended | None:
        now = self.world.now
        self.tokens = min(max(1.0, self.capacity / 10), self.tokens + (now - self.at) * self.capacity)
        self.at = now
        taken = self.tokens >= 1
        self.tokens -= taken
        self.calls.append((now, taken))
        return None if taken else throttled()

    def seen(self, first: float, last: float) -> tuple[float, float]:
        """Calls, and those that it took, a second between these times."""
        here = [taken for at, taken in self.calls if first <= at < last]
        return len(here) / (last - first), sum(here) / (last - first)


class World:
    """One scheduler, one worker with many places, and a tailer that always has enough of the kinds that are wanted."""

    def __init__(self, *, slots: int = 400, quotas: tuple[Quota, ...] = (), takes: float = 0.02, **config: Any) -> None:
        self.now = 100.0
        self.core = core(slow_start=0.0, **config)
        specs = [FunctionSpec(name, downstreams=calls) for name, calls in CALLS.items()]
        self.core.apply([], quotas, specs, 1, self.now)
        self.worker = self.core.attach_worker("w", "w", self.now)
        self.core.worker_connected(self.worker, specs, [PoolLimits("p", tuple(CALLS), slots, slots)], self.now)
        self.tailer = tailer_of(self.core, self.now)
        self.takes = takes
        self.number = self.renewals = 0
        self.wanted: dict[Kind, int] = {}  # so many of each wait at least
        self.verdict: Verdict = lambda kind, attempt: None
        self.running: list[tuple[float, int]] = []
        self.started: list[tuple[float, Kind, int]] = []
        self.out: Counter[Kind] = Counter()
        self.ended: list[Ended] = []

    def push(self, *kinds: Kind, attempt: int = 1) -> None:
        self.number += 1
        ids = [f"{self.number}-{index}" for index in range(len(kinds))]
        flight = Flight(self.number, self.number, list(kinds), ids, [b""] * len(ids), [attempt] * len(ids))
        request = self.tailer.requests.send(self.now)
        self.core.push(self.tailer, flight, request, SIZES.scheduler, self.now)

    def renew(self) -> None:
        """Renews both leases, as heartbeats do."""
        self.renewals += 1
        request = self.tailer.requests.send(self.now)
        self.core.granted(self.tailer, request, SIZES.scheduler, range(self.number + 1))
        self.core.lease_requested(self.worker, self.renewals, self.now)
        self.core.grants(self.worker, self.now)

    def turn(self) -> None:
        self.core.turn(self.now, WALL)
        for ref in sent(self.core, self.worker, self.now):
            kind, attempt = self.worker.open[ref][KIND], self.worker.open[ref][ATTEMPT]
            self.started.append((self.now, kind, attempt))
            heapq.heappush(self.running, (self.now + self.takes, ref))

    def run(self, seconds: float, step: float = 0.01) -> None:
        """Lets time pass."""
        until = self.now + seconds
        ticked = self.now
        while self.now < until:
            self.now += step
            if self.now - ticked >= 1.0:
                ticked = self.now
                self.renew()
                self.core.tick(self.now, WALL)
            done = Outcomes([], {})
            while self.running and self.running[0][0] <= self.now:
                _, ref = heapq.heappop(self.running)
                if ref in self.worker.open:
                    item = self.worker.open[ref]
                    end = self.verdict(item[KIND], item[ATTEMPT])
                    if end is None:
                        done.succeeded.append(ref)
                    else:
                        done.ended[ref] = end
            if len(done):
                self.core.report(self.worker, done, self.now, WALL)
            self.ended += self.tailer.ended.values()
            self.tailer.succeeded, self.tailer.ended = [], {}
            for kind, count in self.wanted.items():
                flows = self.core.roster.functions[kind.function].flows.values()
                here = sum([len(flow.items) for flow in flows if flow.kind.tenant in ("", kind.tenant)])
                if here < count:
                    self.push(*[kind] * (count - here))
            self.turn()

    def limit(self, downstream: str = "d", tenant: str = "") -> Any:
        return self.core.protection.adaptive[downstream, tenant]

    def starts(self, first: float, last: float, *, attempt: int = 0) -> Counter[str]:
        return Counter(
            [
                kind.function
                for at, kind, tried in self.started
                if first <= at < last and (not attempt or (tried > 1) == (attempt > 1))
            ]
        )


A, B, C, FREE = Kind("a"), Kind("b"), Kind("c"), Kind("free")


def test_a_downstream_is_held_at_what_it_takes_and_its_limit_adapts_to_half_and_back() -> None:
    # Given one that takes 500 calls a second, and three functions that could call it ten times as often
    world = World()
    bucket = world.verdict = Bucket(world, 500.0)
    world.wanted = {A: 100, B: 100, C: 100}
    parts: list[tuple[float, float]] = []
    # When it takes half of that for a while, and then all again
    for capacity in (500.0, 250.0, 500.0):
        bucket.capacity = capacity
        world.run(10)
        first = world.now
        world.run(15)
        parts.append(bucket.seen(first, world.now))
    # Then ten seconds later it is called no more than 5 % beyond that, and nine tenths of it is used
    for (calls, taken), capacity in zip(parts, (500.0, 250.0, 500.0), strict=True):
        assert calls <= 1.05 * capacity
        assert taken >= 0.9 * capacity
    # And no attempt was spent
    assert {end.outcome for end in world.ended} <= {Outcome.THROTTLED, Outcome.HELD}
    assert all(end.downstream == "d" for end in world.ended if end.outcome == Outcome.THROTTLED)


def test_nothing_is_limited_before_a_downstream_throttles() -> None:
    world = World()
    world.wanted = {A: 50, FREE: 50}
    world.run(2)
    assert not world.core.limits.any and not world.core.protection.active


def test_what_calls_nothing_is_not_held_by_a_closed_downstream() -> None:
    world = World()
    world.wanted = {A: 50, FREE: 50}
    world.verdict = lambda kind, attempt: None if kind == FREE else throttled(after=20.0)
    world.run(1)
    first = world.now
    world.run(5)
    assert world.limit().state == "closed"
    assert world.starts(first, world.now)["a"] == 0
    assert world.starts(first, world.now)["free"] > 1000


def test_a_retry_after_closes_until_then_and_one_item_probes() -> None:
    # Given a downstream that says when it may be called again
    world = World()
    world.wanted = {A: 50, B: 50}
    world.verdict = lambda kind, attempt: throttled(after=10.0)
    world.run(0.5)
    world.verdict = lambda kind, attempt: None
    closed_at = world.now
    world.run(9)
    assert not world.starts(closed_at, world.now)
    # When the time is over, and what is called takes a while
    world.takes = 1.0
    world.run(1.4)
    # Then exactly one item is out, and when it ends well the share rises from little
    assert sum(world.starts(closed_at, world.now).values()) == 1
    world.takes = 0.02
    world.run(1.0)
    assert world.limit().state == "open"
    early = sum(world.starts(world.now - 0.3, world.now).values())
    world.run(6)
    assert sum(world.starts(world.now - 0.3, world.now).values()) > 3 * early > 0


def test_a_probe_that_fails_doubles_the_wait_and_one_that_never_ends_counts_as_failed() -> None:
    adaptive = Adaptive(probe_timeout=5.0)
    world = World(quotas=(Quota(downstream="d", adaptive=adaptive),))
    world.wanted = {A: 50}
    world.verdict = lambda kind, attempt: throttled()
    world.run(1.5)
    assert world.limit().state == "closed"
    closed_at = world.now
    world.run(60)
    # Nothing passes: it closed by itself, and the probes came seldomer and seldomer
    probes = [at for at, _, _ in world.started if at > closed_at]
    assert 4 <= len(probes) <= 6
    gaps = [later - earlier for earlier, later in pairwise(probes)]
    assert gaps == sorted(gaps) and gaps[-1] > 3 * gaps[0]
    # A probe that does not end is given up
    world.takes = 1000.0
    world.run(60)
    assert "did not end" in world.limit().why


def test_one_that_is_not_to_adapt_does_not() -> None:
    world = World(quotas=(Quota(downstream="d", adaptive=Adaptive(on=False)),))
    world.wanted = {A: 50}
    world.verdict = lambda kind, attempt: throttled()
    world.run(2)
    assert not world.core.protection.adaptive
    assert world.core.protection.throttled["d"] > 100


def test_an_operator_turns_it_off_while_it_is_closed_and_what_waited_starts() -> None:
    world = World()
    world.wanted = {A: 50}
    world.verdict = lambda kind, attempt: throttled(after=200.0)
    world.run(1)
    world.verdict = lambda kind, attempt: None
    world.core.apply([], [Quota(downstream="d", adaptive=Adaptive(on=False))], [], 2, world.now)
    first = world.now
    world.run(1)
    assert world.starts(first, world.now)["a"] > 100


def test_floor_and_ceiling_hold() -> None:
    world = World(quotas=(Quota(downstream="d", adaptive=Adaptive(floor=20.0, ceiling=50.0)),))
    bucket = world.verdict = Bucket(world, 5.0)
    world.wanted = {A: 50}
    world.run(20)
    assert world.limit().allowed == 20.0
    bucket.capacity = 1e6
    world.run(60)
    assert world.limit().allowed == 50.0


def test_explain_says_what_it_takes_and_when_the_probe_comes() -> None:
    world = World()
    world.wanted = {A: 10}
    world.verdict = lambda kind, attempt: throttled(after=60.0)
    world.run(1)
    waiting = next(item for flow in world.core.roster.functions["a"].flows.values() for item in flow.items)
    said = explain(world.core, waiting[2], world.now, WALL)
    assert said.reason == "downstream"
    assert "downstream d" in said.detail and "one item probes it" in said.detail and "429" in said.detail


def test_a_worker_that_attaches_gets_its_share_slowly_where_it_calls_a_downstream() -> None:
    world = World(slots=1)
    world.core.protection._slow_start = 2.0
    specs = [FunctionSpec(name, downstreams=calls) for name, calls in CALLS.items()]
    for name, functions in (("calls", ("a", "free")), ("calls_not", ("free",))):
        worker = world.core.attach_worker(name, name, world.now)
        world.core.worker_connected(worker, specs, [PoolLimits("p", functions, 100, 100)], world.now)
    pools = [world.core.workers[name].pools["p"] for name in ("calls", "calls_not")]
    assert [pool.limit for pool in pools] == [10, 100]
    for _ in range(3):
        world.now += 0.5
        world.core.turn(world.now, WALL)
    assert 50 < pools[0].limit < 100
    world.now += 1
    world.core.turn(world.now, WALL)
    assert [pool.limit for pool in pools] == [100, 100]
    assert not world.core.protection.active and world.core.protection.next_at is None


def test_a_closed_downstream_reserves_nothing_of_what_others_need() -> None:
    # Given c, which calls d and e, and a limit on e that b's neighbours need; d is closed for long
    world = World(quotas=(Quota(downstream="e", concurrency=5),))
    world.wanted = {C: 20}
    world.verdict = lambda kind, attempt: throttled("d", after=250.0)
    world.run(1)
    e = next(limit for limit in world.core.limits.charges.all() if limit.name == "downstream e")
    world.verdict = lambda kind, attempt: None
    world.run(10)
    assert e.reserver is None


def test_refs_of_a_report_that_are_not_open_say_nothing() -> None:
    world = World()
    world.core.report(world.worker, Outcomes([5 << INDEX_BITS], {6 << INDEX_BITS: throttled()}), world.now, WALL)
    assert not world.core.protection.throttled


def test_what_a_function_calls_that_comes_back_from_an_open_breaker_rises_slowly() -> None:
    # Given a function of which everything failed, so that its own circuit breaker opened
    world = World()
    world.wanted = {A: 100}
    world.verdict = lambda kind, attempt: Ended(Outcome.RETRY, "no")
    world.run(3)
    assert "a" in world.core.outages.closed
    assert ("d", "") not in world.core.protection.adaptive
    # When it works again
    world.verdict = lambda kind, attempt: None
    first = world.now
    while "a" in world.core.outages.closed:
        world.run(0.1)
    # Then the share of its downstream rises within seconds
    back = world.now
    world.run(1)
    early = world.starts(back + 0.2, back + 1.0)["a"]
    world.run(9)
    late = world.starts(world.now - 0.8, world.now)["a"]
    assert back - first < 40 and late > 5 * early
