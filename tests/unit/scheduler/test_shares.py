"""Shares in the whole core, from the source on (FL21): what a tailer brings by its credit gives turns a choice."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Mapping
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.scheduler.test_scheduler_core import SIZES, WALL, core, flight, sent, tailer_of, worker_of

from tailrace.model.demand import Cell
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.workload import Kind, Outcomes
from tailrace.model.workload import ref as item_ref
from tailrace.scheduler.rules.closing import MOST_CLOSED, MOST_UNCLOSED_BACK
from tailrace.scheduler.rules.share import CLOSES, CREDIT, LEAST, FlowPace, choice, paced, part, worth
from tailrace.tailers.rules.credit import Credit

STEP = 0.01


class Sourced:
    """A core, a worker of so many slots, and a tailer that brings what rests in its source as far as credit and
    closings let it, of all kinds in turns: as a queue is claimed, and as what a stream's tailer read ahead leaves."""

    def __init__(self, slots: int, backlog: Mapping[Kind, int], runs: Mapping[Kind, float]) -> None:
        self.core = core()
        self.worker = worker_of(self.core, limit=slots)
        self.tailer = tailer_of(self.core)
        self.credit = Credit()
        self.runs = runs
        self.rest = {kind: backlog[kind] for kind in backlog}
        self.turns = deque(backlog)
        self.numbers = count(1)
        self.now = 0.0
        self.ends: list[tuple[float, int]] = []
        self.started: Counter[Kind] = Counter()
        self.kinds: dict[int, Kind] = {}
        self.most_here = 0
        self.went_back = 0
        self.idle = 0.0

    def bring(self) -> None:
        """Makes one claim, or one look at what was read; what it brings goes out as a flight."""
        brought: list[Kind] = []
        open_kinds = [kind for kind in self.turns if self.rest[kind] and not self.credit.is_closed(kind)]
        self.turns.rotate(-1)
        while open_kinds and len(brought) < 512:
            for kind in list(open_kinds):
                cell = Cell(kind.function, kind.priority)
                if not self.rest[kind] or not self.credit.room(cell) or len(brought) == 512:
                    open_kinds.remove(kind)
                    continue
                self.credit.take({cell: 1})
                self.rest[kind] -= 1
                brought.append(kind)
        if brought:
            request, number = self.tailer.requests.send(self.now), next(self.numbers)
            self.kinds |= {item_ref(number, index): kind for index, kind in enumerate(brought)}
            self.core.push(self.tailer, flight(number, *brought), request, SIZES.scheduler, self.now)

    def hear(self) -> None:
        self.credit.limit(self.tailer.cells.items(), self.tailer.total)
        self.credit.close(self.tailer.closed)

    def run(self, seconds: float) -> Counter[Kind]:
        """Lets time pass. Returns what started in it."""
        before = self.started.copy()
        for step in range(round(seconds / STEP)):
            self.now += STEP
            over: list[int] = []
            while self.ends and self.ends[0][0] <= self.now:
                over.append(heapq.heappop(self.ends)[1])
            if over:
                for ref in over:
                    kind = self.worker.open[ref][4]
                    self.credit.give({Cell(kind.function, kind.priority): 1})
                self.core.report(self.worker, Outcomes(over, {}), self.now, WALL)
            if step % 5 == 0:  # a tailer hears and claims a while later
                self.hear()
                self.bring()
            if step % 100 == 0:
                request = self.tailer.requests.send(self.now)
                self.core.granted(self.tailer, request, SIZES.scheduler, list(self.tailer.held.flights))
                self.core.lease_requested(self.worker, self.worker.granted.number + 1, self.now)
                self.core.grants(self.worker, self.now)
                self.core.tick(self.now, WALL)
            self.core.turn(self.now, WALL)
            for ref in sent(self.core, self.worker, self.now):
                kind = self.worker.open[ref][4]
                self.started[kind] += 1
                heapq.heappush(self.ends, (self.now + self.runs[kind], ref))
            pool = self.worker.pools["default"]
            self.idle += STEP * pool.room / pool.limit
            self.most_here = max(self.most_here, self.tailer.held.items)
            for ref in self.tailer.ended:  # went back: it rests in the source again
                kind = self.kinds[ref]
                self.rest[kind] += 1
                self.went_back += 1
                self.credit.give({Cell(kind.function, kind.priority): 1})
            self.tailer.succeeded, self.tailer.ended = [], {}
        return self.started - before


def tenants(*names: str) -> list[Kind]:
    return [Kind("a", 1, "", name) for name in names]


def test_tenants_that_all_have_much_waiting_start_by_their_weights() -> None:
    # Given a worker of few slots, and three tenants of which each has more in the source than can start
    light, middle, heavy = kinds = tenants("light", "middle", "heavy")
    backlog = {light: 5_000, middle: 10_000, heavy: 20_000}
    world = Sourced(32, backlog, runs=dict.fromkeys(kinds, 0.02))
    weights = [Quota(tenant=kind.tenant, weight=weight) for kind, weight in zip(kinds, (1.0, 2.0, 4.0), strict=True)]
    world.core.apply([], weights, [], 1, 0.0)
    # When they compete
    world.run(3.0)
    world.idle = 0.0
    started = world.run(10.0)
    # Then each starts its share within 5 %, and no slot is idle
    for kind, weight in zip(kinds, (1, 2, 4), strict=True):
        assert started[kind] / started.total() * 7 / weight == pytest.approx(1.0, abs=0.05)
    assert world.idle < 0.05


def test_functions_of_one_tenant_start_by_their_weights() -> None:
    kinds = [Kind("a", 1), Kind("b", 1), Kind("c", 1)]
    world = Sourced(32, dict.fromkeys(kinds, 20_000), runs=dict.fromkeys(kinds, 0.02))
    quotas = [Quota(kind.function, weight=weight) for kind, weight in zip(kinds, (1.0, 3.0, 6.0), strict=True)]
    world.core.apply([], quotas, [], 1, 0.0)
    world.run(3.0)
    started = world.run(10.0)
    for kind, weight in zip(kinds, (1, 3, 6), strict=True):
        assert started[kind] / started.total() * 10 / weight == pytest.approx(1.0, abs=0.05)


def test_runs_of_another_length_count_by_the_time_that_they_take_also_while_they_always_wait() -> None:
    # Given two tenants of the same weight, of which the runs of one take five times as long
    short, long = kinds = tenants("short", "long")
    world = Sourced(20, dict.fromkeys(kinds, 50_000), runs={short: 0.02, long: 0.1})
    world.core.apply([], [Quota(per="tenant", weight=1.0)], [], 1, 0.0)
    world.run(10.0)
    started = world.run(10.0)
    # Then both have half of the slots
    assert started[short] / started[long] == pytest.approx(5.0, rel=0.1)


def test_when_a_flood_is_over_what_waited_for_it_has_the_slots_within_half_a_second() -> None:
    # Given a flood above what is less urgent, which waits, in part in its source
    urgent, patient = Kind("a", 0, "", "x"), Kind("a", 3, "", "y")
    world = Sourced(32, {urgent: 8_000, patient: 8_000}, runs={urgent: 0.02, patient: 0.02})
    world.core.apply([], [Quota(per="tenant", weight=1.0)], [], 1, 0.0)
    while world.rest[urgent] or world.core.roster.functions["a"].waiting > 2_000:
        world.run(0.1)
    # When it ends, Then the other takes all slots, with less than half a second lost
    world.idle = 0.0
    world.run(2.0)
    assert world.idle < 0.5


def test_what_waits_here_is_bounded_by_time_and_nothing_is_held_without_quotas() -> None:
    kinds = tenants("x", "y")
    world = Sourced(32, dict.fromkeys(kinds, 50_000), runs=dict.fromkeys(kinds, 0.02))
    world.run(5.0)
    without = world.most_here
    assert without <= 64
    # Given a quota, When they compete
    world.core.apply([], [Quota(per="tenant", weight=1.0)], [], 1, world.now)
    world.run(5.0)
    # Then there wait some seconds of starts at most
    assert without < world.most_here < 2 * CREDIT * 1600
    # And when it is taken away, as few as before once what waits has started
    world.core.apply([], [], [], 2, world.now)
    world.run(20.0)
    assert world.tailer.held.items <= 64


def test_a_flood_that_waits_alone_leaves_credit_for_another_and_no_slot_idle() -> None:
    # Given a flood of one tenant, limited to half of the slots, in a source where nobody else has anything
    flood, other = tenants("flood", "other")
    world = Sourced(32, {flood: 100_000, other: 0}, runs={flood: 0.02, other: 0.02})
    world.core.apply([], [Quota(per="tenant", weight=1.0), Quota(tenant="flood", concurrency=16)], [], 1, 0.0)
    world.run(5.0)
    # When an item of another comes now and then, Then it starts with the tailer's next look
    for _ in range(40):
        world.rest[other] += 1
        started = world.run(0.13)
        assert started[other] == 1 and world.credit.room(Cell("a", 1)) > world.tailer.cells[Cell("a", 1)] // 8
    # And the flood has its slots all the time
    assert world.run(5.0)[flood] == pytest.approx(16 * 50 * 5, rel=0.05)
    assert world.went_back < 2_000


def test_what_waits_for_a_full_downstream_takes_no_credit_from_others_whatever_labels_it_has() -> None:
    # Given two functions that call a downstream of one item a second, with tenants that no quota names, and a third one
    calling = [Kind(name, 1, "news", tenant) for name in ("a", "b") for tenant in ("x", "y", "z")]
    free = Kind("c", 1, "", "x")
    world = Sourced(16, dict.fromkeys(calling, 5_000) | {free: 0}, runs=dict.fromkeys([*calling, free], 0.02))
    specs = [FunctionSpec("a", downstreams=("d",)), FunctionSpec("b", downstreams=("d",)), FunctionSpec("c")]
    world.core.apply([], [Quota(downstream="d", rate=1.0)], specs, 1, 0.0)
    world.run(5.0)
    # When an item of the third comes now and then, Then it starts with the tailer's next look
    for _ in range(20):
        world.rest[free] += 1
        assert world.run(0.13)[free] == 1
    # And what the downstream keeps waiting rests in the source
    assert world.tailer.held.items < world.credit.total // 2
    assert world.went_back < 1_000


def test_what_limits_keep_waiting_takes_no_slot_from_others_however_little_each_has() -> None:
    # Given tenants of which each may run one, and the source has a few more of each than that
    kinds = tenants(*[f"t{number}" for number in range(80)])
    world = Sourced(64, dict.fromkeys(kinds, 0), runs=dict.fromkeys(kinds, 3600.0))
    world.core.apply([], [Quota(per="tenant", concurrency=1)], [], 1, 0.0)
    # When they come one after the other
    for kind in kinds:
        world.rest[kind] = 6
        world.run(0.3)
    # Then each of the first starts one, and no slot is idle
    assert world.started.total() == 64
    world.idle = 0.0
    world.run(1.0)
    assert world.idle == 0


def test_beyond_as_many_closed_flows_as_there_may_be_little_goes_round_and_others_start() -> None:
    # Given more tenants than can be closed, each of which has much more than its rate lets start
    kinds, free = tenants(*[f"t{number}" for number in range(1_200)]), Kind("a", 1, "", "free")
    world = Sourced(64, dict.fromkeys(kinds, 50) | {free: 0}, runs=dict.fromkeys([*kinds, free], 0.02))
    quotas = [Quota(per="tenant", rate=0.01, burst=1.0, max_values=2_000), Quota(tenant="free", rate=1000.0)]
    world.core.apply([], quotas, [], 1, 0.0)
    world.run(3.0)
    assert len(world.core.closings.closed) == MOST_CLOSED
    # When a while passes
    world.went_back = 0
    world.run(1.0)
    # Then what goes back is a bounded number with each look
    assert 0 < world.went_back <= 5 * MOST_UNCLOSED_BACK
    # And an item of another starts with one of the next claims that have its turn
    world.rest[free] = 1
    for _ in range(10):
        world.turns.remove(free)
        world.turns.appendleft(free)
        world.run(0.05)
    assert world.started[free] == 1


def test_weights_hold_among_more_tenants_than_slots() -> None:
    many = [f"t{number}" for number in range(300)]
    kinds = tenants(*many)
    world = Sourced(16, dict.fromkeys(kinds, 200), runs=dict.fromkeys(kinds, 0.01))
    quotas = [Quota(tenant=name, weight=1.0 + number % 2 * 2) for number, name in enumerate(many)]
    world.core.apply([], quotas, [], 1, 0.0)
    world.run(5.0)
    started = world.run(10.0)
    heavy = sum(started[kind] for number, kind in enumerate(kinds) if number % 2)
    assert heavy / started.total() == pytest.approx(0.75, abs=0.05)
    assert world.most_here <= CREDIT * (LEAST * len(kinds) + 1600) * 1.3 + 64


# ---- the rule


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 10_000), st.integers(1, 20_000))
def test_parts_leave_room_for_a_choice(rate: float, others: float, flows: int, bound: int) -> None:
    together = rate + others
    own = worth(rate, together, flows)
    assert own >= LEAST and own >= rate
    whole = own + LEAST * (flows - 1) + others
    mine = part(own, whole, bound)
    assert 2 <= mine <= max(2, CLOSES * own)
    assert mine <= max(2, CLOSES / CREDIT * bound)


def test_a_pace_is_the_more_of_the_last_two_looks() -> None:
    first = paced(None, 100, 0.25)
    assert first == FlowPace(100)
    fast = paced(first, 200, 0.25)
    assert (fast.rate, fast.last) == (400.0, 400.0)
    slow = paced(fast, 210, 0.25)
    assert (slow.rate, slow.last) == (400.0, 40.0)
    assert paced(slow, 220, 0.25).rate == 40.0
    assert paced(slow, 220, 0.0) == FlowPace(220)


def test_credit_changes_only_by_much() -> None:
    assert choice(100.0, 0, 10_000) == 256
    assert choice(30.0, 256, 10_000) == 256
    assert choice(200.0, 256, 10_000) == 512
    assert choice(20.0, 256, 10_000) == 64
    assert choice(0.0, 256, 10_000) == 0
    assert choice(1e9, 0, 10_000) == 10_000
