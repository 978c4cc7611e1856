"""The core under random histories: every item ends exactly once, none is handed out twice, limits always hold."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.lease import LeaseSizes
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import INDEX_BITS, Ended, Extra, Flight, Kind, Outcomes, ref
from tailrace.scheduler.config import ClogConfig, SchedulerConfig
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import TailerSession, WorkerSession

SIZES = LeaseSizes()
NAMES = ("a", "b", "c")
SPECS = [FunctionSpec(name) for name in NAMES]
KINDS = [Kind(name, priority, collection) for name in NAMES for priority in (0, 3) for collection in ("", "x")]
WALL = 1000.0


def core(**config: Any) -> Core:
    return Core(SchedulerConfig(**config), SIZES, ready=True)


def worker_of(
    made: Core, now: float = 0.0, limit: int = 10, names: tuple[str, ...] = NAMES, session: str = "w", alone: int = 0
) -> WorkerSession:
    """A worker; `alone`: how many that must run alone it can have, if it has a pool for that."""
    worker = made.attach_worker(session, session, now)
    pools = [PoolLimits("default", names, limit, limit)]
    pools += [PoolLimits("apart", names, alone, alone, alone=True)] if alone else []
    made.worker_connected(worker, SPECS, pools, now)
    return worker


def tailer_of(made: Core, now: float = 0.0, session: str = "t") -> TailerSession:
    tailer = made.attach_tailer(session, session, now)
    made.tailer_connected(tailer)
    return tailer


def flight(number: int, *kinds: Kind, extras: dict[int, Extra] | None = None) -> Flight:
    ids = [f"{number}-{index}" for index in range(len(kinds))]
    return Flight(number, number, list(kinds), ids, [b""] * len(ids), [1] * len(ids), extras or {})


def sent(made: Core, worker: WorkerSession, now: float) -> dict[int, tuple[TailerSession, int]]:
    """Takes what a worker would be sent: its refs and whose items they are."""
    found = {}
    while (next_one := made.assignment(worker, now)) is not None:
        assignment, lease = next_one
        assert 0 < lease <= SIZES.worker
        for index, item in enumerate(assignment.items):
            found[ref(assignment.flight, index)] = (item[0], item[1])
    return found


class History(RuleBasedStateMachine):
    """A world of two tailers and some workers; the model knows what was pushed, sent out, and ended."""

    live = Bundle("live")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.core = core(lane_items=64, clog=ClogConfig(outcomes=5, share=0.6))  # freezes within a few failures
        self.quotas: dict[str, Quota] = {}
        self.pushed: set[tuple[str, int]] = set()
        self.given: set[tuple[str, int]] = set()
        self.ended: dict[tuple[str, int], int] = {}
        self.out: dict[str, dict[int, tuple[TailerSession, int]]] = {}
        self.numbers = 0
        self.sessions = 0
        self.went_on: set[tuple[str, int]] = set()  # waited for other work once, and go on

    @initialize()
    def begin(self) -> None:
        self.tailers = [tailer_of(self.core, session=name) for name in ("t1", "t2")]

    def step(self) -> None:
        """Does the work of a loop turn: dispatch, send, and take outcomes out."""
        self.core.turn(self.now, WALL)
        for worker in self.core.workers.values():
            if worker.connected:
                for each, (tailer, theirs) in sent(self.core, worker, self.now).items():
                    assert (tailer.session, theirs) not in self.given, "handed out twice"
                    self.given.add((tailer.session, theirs))
                    self.out[worker.session][each] = (tailer, theirs)
        for tailer in self.tailers:
            ends = [(each, int(Outcome.SUCCESS)) for each in tailer.succeeded]
            ends += [(each, end.outcome) for each, end in tailer.ended.items()]
            tailer.succeeded, tailer.ended = [], {}
            for each, outcome in ends:
                name = (tailer.session, each)
                assert name in self.pushed and name not in self.ended, "ended twice, or never pushed"
                assert outcome != Outcome.HELD or name not in self.given, "it started, so it is not held"
                self.ended[name] = outcome

    @rule(
        which=st.integers(0, 1),
        kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=12),
        dated=st.booleans(),
        alone=st.integers(0, 3),
    )
    def push(self, which: int, kinds: list[Kind], dated: bool, alone: int) -> None:
        tailer = self.tailers[which]
        self.numbers += 1
        extras = {index: Extra(alone=True, crashes=1) for index in range(min(alone, len(kinds)))}
        if dated:
            extras[0] = Extra(expires_at=WALL - 1, alone=alone > 0)
        number = len(tailer.requests._sent) - 1
        self.pushed |= {(tailer.session, ref(self.numbers, index)) for index in range(len(kinds))}
        self.core.push(tailer, flight(self.numbers, *kinds, extras=extras), number, SIZES.scheduler, self.now)
        self.step()

    @rule(
        target=live,
        limit=st.integers(1, 8),
        names=st.sampled_from([NAMES, ("a",), ("a", "b")]),
        alone=st.integers(0, 2),
    )
    def attach(self, limit: int, names: tuple[str, ...], alone: int) -> WorkerSession:
        self.sessions += 1
        session = f"w{self.sessions}"
        self.out[session] = {}
        worker = worker_of(self.core, self.now, limit, names, session, alone)
        self.step()
        return worker

    @rule(worker=live, data=st.data())
    def report(self, worker: WorkerSession, data: st.DataObject) -> None:
        out = self.out[worker.session]
        if not worker.connected or not out:
            return
        refs = data.draw(st.lists(st.sampled_from(sorted(out)), unique=True))
        bad = data.draw(st.booleans())
        for each in refs:
            del out[each]
        if bad:
            self.core.report(
                worker, Outcomes([], {each: Ended(Outcome.RETRY, "boom") for each in refs}), self.now, WALL
            )
        else:
            self.core.report(worker, Outcomes([*refs, 1 << 40], {}), self.now, WALL)
        self.core.report(worker, Outcomes(refs, {}), self.now, WALL)  # said twice: ignored
        self.step()

    @rule(worker=live, data=st.data())
    def wait(self, worker: WorkerSession, data: st.DataObject) -> None:
        """Has some of its runs wait for other work, and others go on; what was said before may be said again."""
        out = self.out[worker.session]
        if not worker.connected or not out:
            return
        some = st.lists(st.sampled_from([*sorted(out), 1 << 40]), unique=True)
        waits, goes_on = data.draw(some), data.draw(some)
        self.went_on -= {(worker.session, each) for each in waits}
        self.core.waits(worker, waits, goes_on, self.now)
        self.went_on |= {(worker.session, each) for each in goes_on if each in out and each not in worker.parents}
        self.step()

    @rule(worker=live)
    def away(self, worker: WorkerSession) -> None:
        if worker.connected:
            self.core.worker_away(worker, self.now)
            self.step()

    @rule(worker=live)
    def back(self, worker: WorkerSession) -> None:
        if not worker.connected and worker.session in self.core.workers:
            pools = [
                PoolLimits(pool.name, tuple(pool.functions), pool.slots, pool.limit, pool.alone)
                for pool in worker.pools.values()
            ]
            self.core.worker_connected(worker, SPECS, pools, self.now)
            self.core.lease_requested(worker, worker.granted.number + 1, self.now)
            self.step()

    @rule(worker=consumes(live))
    def drain_worker(self, worker: WorkerSession) -> None:
        self.core.worker_draining(worker, self.now)
        self.step()

    @rule(which=st.integers(0, 1), data=st.data())
    def cancel(self, which: int, data: st.DataObject) -> None:
        tailer = self.tailers[which]
        mine = sorted(each for session, each in self.pushed if session == tailer.session)
        if mine:
            self.core.cancel(tailer, data.draw(st.lists(st.sampled_from(mine), max_size=5)))
            self.step()

    @rule(name=st.sampled_from(NAMES), concurrency=st.integers(0, 3), rate=st.sampled_from([0.0, 0.5, 5.0]))
    def quota(self, name: str, concurrency: int, rate: float) -> None:
        self.quotas[name] = Quota(name, concurrency, rate)
        self.core.apply([], self.quotas.values(), [], 1, self.now)
        self.step()

    @rule(name=st.sampled_from(NAMES), collection=st.sampled_from(["", "x"]), action=st.sampled_from(["pause", "drop"]))
    def gate(self, name: str, collection: str, action: str) -> None:
        self.core.apply([Gate(name, collection, action)], self.quotas.values(), [], 2, self.now)
        self.step()
        lanes = [lane for each in self.core.roster.functions.values() if each.name == name for lane in each.rooms]
        waiting = [item for lane in lanes for item in lane.items]
        assert not [item for item in waiting if collection in ("", item[4].collection)]
        self.core.apply([], self.quotas.values(), [], 3, self.now)

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 20.0]), renew=st.booleans())
    def time(self, seconds: float, renew: bool) -> None:
        self.now += seconds
        if renew:
            self.renew()
        self.core.tick(self.now, WALL)
        self.step()

    def renew(self) -> None:
        for tailer in self.tailers:
            number = tailer.requests.send(self.now)
            self.core.granted(tailer, number, SIZES.scheduler, list(tailer.held.flights))
        for worker in list(self.core.workers.values()):
            if worker.connected:
                self.core.lease_requested(worker, worker.granted.number + 1, self.now)
                self.core.grants(worker, self.now)

    @invariant()
    def limits_hold(self) -> None:
        for worker in self.core.workers.values():
            assert not worker.revoked - worker.open.keys()
            assert not worker.parents - worker.open.keys()
            assert sum(each.open for each in worker.flights.values()) == len(worker.open)
            for pool in worker.pools.values():
                mine = sum(each.open for each in worker.flights.values() if each.pool is pool)
                beyond = {each for session, each in self.went_on if session == worker.session}
                assert mine == pool.assigned + pool.parents
                assert 0 <= pool.parents <= pool.spare
                assert pool.assigned <= pool.limit + len(beyond)
            for number, item in worker.open.items():
                if worker.flights[number >> INDEX_BITS].pool.alone:
                    assert item[7] is not None and item[7].alone
        for name, function in self.core.roster.functions.items():
            workers = self.core.workers.values()
            running = [item for each in workers for ref, item in each.open.items() if ref not in each.parents]
            count = sum(item[4].function == name for item in running)
            for limit in self.core.limits.charges.all():
                if limit.name == f"function {name}":
                    assert limit.running == count
            for part in (function, function.alone):
                for rank in (0, 3):
                    assert sum(len(flow) for flow in part.flows.values() if flow.rank == rank) <= 64
                for flow in part.flows.values():
                    assert flow.queued or not flow.items or function.able is None
            assert function.frozen == (name in self.core.outages.closed)
            assert function.frozen or not function.asking.items

    @invariant()
    def every_item_is_in_one_place(self) -> None:
        places = [
            (item[0].session, item[1])
            for function in self.core.roster.functions.values()
            for lane in function.rooms
            for item in lane.items
        ]
        places += [(item[0].session, item[1]) for worker in self.core.workers.values() for item in worker.open.values()]
        assert len(places) == len(set(places))
        assert set(places) | self.ended.keys() == self.pushed
        assert not set(places) & self.ended.keys()

    def teardown(self) -> None:
        """Asserts that everything ends, once faults cease."""
        for worker in list(self.core.workers.values()):
            self.core.worker_away(worker, self.now)
        for _ in range(20):
            self.now += 10.0
            for tailer in self.tailers:
                self.core.granted(tailer, tailer.requests.send(self.now), SIZES.scheduler, list(tailer.held.flights))
            self.core.tick(self.now, WALL)
            self.step()
        assert self.ended.keys() == self.pushed
        assert not self.core.workers
        assert all(not tailer.held.flights and not tailer.held.items for tailer in self.tailers)


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_whole_flight_goes_and_comes_back() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    made.push(tailer, flight(1, *KINDS), 0, 28.0, 0.0)
    made.turn(0.0, WALL)
    out = sent(made, worker, 0.0)
    assert len(out) == len(KINDS)
    made.report(worker, Outcomes(list(out), {}), 0.0, WALL)
    assert sorted(tailer.succeeded) == [ref(1, index) for index in range(len(KINDS))]
    assert not tailer.held.items and not worker.flights


def test_two_functions_that_flood_share_the_workers_by_weight() -> None:
    made = core()
    made.apply([], [Quota("b", weight=3.0)], [], 1, 0.0)
    worker, tailer = worker_of(made, limit=80), tailer_of(made)
    for number in range(1, 5):
        made.push(tailer, flight(number, *[Kind("a")] * 40, *[Kind("b")] * 40), 0, 28.0, 0.0)
    started = {"a": 0, "b": 0}
    for _ in range(2):
        made.turn(0.0, WALL)
        out = sent(made, worker, 0.0)
        for each in out:
            started[worker.open[each][4].function] += 1
        made.report(worker, Outcomes(list(out), {}), 0.0, WALL)
    assert started == {"a": 40, "b": 120}


def test_a_flooding_cell_leaves_room_for_the_others() -> None:
    made = core()
    worker_of(made, limit=100)
    tailer = tailer_of(made)
    limits = [limit for cell, limit in tailer.cells.items() if cell.function == "a"]
    assert limits and max(limits) <= tailer.total // 2


def test_a_push_far_beyond_the_credit_goes_back() -> None:
    made = core()
    worker_of(made, limit=1)
    tailer = tailer_of(made)
    assert tailer.total == 64
    for number in range(1, 4):
        made.push(tailer, flight(number, *[KINDS[0]] * 60), 0, 28.0, 0.0)
    assert {end.reason for end in tailer.ended.values()} == {"no_credit"}
    assert {each >> 10 for each in tailer.ended} == {3}


def test_a_flight_seen_before_is_ignored() -> None:
    made = core()
    worker, tailer = worker_of(made), tailer_of(made)
    for _ in range(2):
        made.push(tailer, flight(1, KINDS[0]), 0, 28.0, 0.0)
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 1


def test_a_rate_limit_names_when_it_wants_to_be_woken() -> None:
    made = core()
    made.apply([], [Quota("a", rate=2.0, burst=1.0)], [], 1, 0.0)
    worker, tailer = worker_of(made), tailer_of(made)
    made.push(tailer, flight(1, *[Kind("a")] * 3), 0, 28.0, 0.0)
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 1
    at = made.next_at
    assert at is not None and math.isclose(at, 0.5)
    made.turn(at, WALL)
    assert len(sent(made, worker, at)) == 1


def test_a_silent_worker_gets_nothing_more() -> None:
    made = core()
    worker, tailer = worker_of(made), tailer_of(made)
    made.tick(12.5, WALL)
    made.push(tailer, flight(1, KINDS[0]), tailer.requests.send(12.5), 28.0, 12.5)
    made.turn(12.5, WALL)
    assert not sent(made, worker, 12.5)
    made.lease_requested(worker, 1, 13.0)
    made.turn(13.0, WALL)
    assert sent(made, worker, 13.0)


def test_a_forgotten_tailer_leaves_nothing_behind() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=1), tailer_of(made)
    made.push(tailer, flight(1, Kind("a"), Kind("a")), 0, 28.0, 0.0)
    made.turn(0.0, WALL)
    out = sent(made, worker, 0.0)
    made.tailer_away(tailer, 1.0)
    made.tick(28.5, WALL)
    assert not made.tailers or tailer.ended
    made.tick(29.5, WALL)
    assert not made.tailers and worker.revoked == set(out) <= set(worker.cancel)
    made.report(worker, Outcomes(list(out), {}), 0.0, WALL)
    assert not tailer.succeeded and not worker.revoked
