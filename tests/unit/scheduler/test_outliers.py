"""Workers at which work fails that goes well at others get nothing for a while, and are probed (docs/flow-control.md,
FL23)."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.scheduler.test_scheduler_core import SIZES, WALL, core, sent, tailer_of

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Flight, Kind, Outcomes
from tailrace.scheduler.rules.outlier import (
    LEAST,
    LONGEST_PAUSE,
    PROBES,
    WorkerHealth,
    WorkerState,
    may_eject,
    stands_out,
)
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.view import inspect

A = Kind("a")


def of(good: int, bad: int, now: float = 100.0) -> WorkerHealth:
    made = WorkerHealth(10.0, now)
    made.note(good, bad, now)
    return made


@pytest.mark.parametrize(
    ("own", "peers", "out"),
    [
        ((10, 20), [(50, 1)], True),
        ((10, 20), [(50, 1), (40, 2)], True),
        ((20, 10), [(50, 1)], False),  # a third is no half
        ((10, 20), [(20, 30)], False),  # it fails everywhere
        ((3, 5), [(50, 1)], False),  # too little is known of it
        ((10, 20), [(5, 0)], False),  # or of the others
        ((10, 20), [], False),  # it has no peers
    ],
)
def test_a_worker_stands_out_or_not(own: tuple[int, int], peers: list[tuple[int, int]], out: bool) -> None:
    assert stands_out(of(*own), [of(*each) for each in peers]) is out


def test_at_most_half_of_the_peers_are_out() -> None:
    assert [may_eject(out, 5) for out in range(4)] == [True, True, False, False]
    assert not may_eject(0, 1)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0, 400)), max_size=30))
def test_pauses_grow_and_are_bounded_and_nothing_falls_below_nothing(steps: list[tuple[int, int, float]]) -> None:
    health, now = WorkerHealth(10.0, 0.0), 0.0
    for good, bad, seconds in steps:
        now += seconds
        health.note(good, bad, now)
        assert health.good >= 0 and health.bad >= 0 and 0 <= health.share <= 1
        if health.state is WorkerState.IN and health.bad > LEAST:
            health.eject(now)
        elif health.state is WorkerState.OUT and now >= health.until:
            health.probe()
        if health.state is WorkerState.OUT:
            assert health.until - now <= LONGEST_PAUSE + 1e-6


def test_a_probe_that_fails_doubles_the_pause_and_a_good_while_forgives() -> None:
    health = of(0, 30)
    now, pauses = 100.0, []
    for _ in range(3):
        health.eject(now) if not pauses else health.note(0, 1, now)
        pauses.append(health.until - now)
        now = health.until
        health.probe()
    assert pauses == [10.0, 20.0, 40.0]
    health.note(PROBES - 1, 0, now)
    assert health.state is WorkerState.PROBING
    health.note(1, 0, now)
    assert health.state is WorkerState.IN and health.bad == 0
    health.eject(now + 1000.0)
    assert health.until == now + 1010.0


class Workers:
    """A scheduler with some workers; at which of them items fail, `fails` says of each."""

    def __init__(self, count: int, **config: Any) -> None:
        self.now = 100.0
        self.core = core(**config)
        self.core.apply([], [], [FunctionSpec("a")], 1, self.now)
        self.workers = [self.core.attach_worker(f"w{n}", f"w{n}", self.now) for n in range(count)]
        for worker in self.workers:
            self.core.worker_connected(worker, [FunctionSpec("a")], [PoolLimits("p", ("a",), 10, 10)], self.now)
        self.tailer = tailer_of(self.core, self.now)
        self.fails: Callable[[str], bool] = lambda name: False
        self.number = 0
        self.running: list[tuple[float, int, int]] = []
        self.started: Counter[str] = Counter()

    def run(self, seconds: float) -> Counter[str]:
        """Lets time pass; what was started meanwhile, by worker."""
        self.started = Counter()
        until, renewed = self.now + seconds, 0.0
        while self.now < until:
            self.now += 0.01
            if self.now - renewed >= 1.0:
                renewed = self.now
                request = self.tailer.requests.send(self.now)
                self.core.granted(self.tailer, request, SIZES.scheduler, range(self.number + 1))
                for worker in self.workers:
                    self.core.lease_requested(worker, int(self.now * 100), self.now)
                    self.core.grants(worker, self.now)
                self.core.tick(self.now, WALL)
            done = [Outcomes([], {}) for _ in self.workers]
            while self.running and self.running[0][0] <= self.now:
                _, at, ref = heapq.heappop(self.running)
                if self.fails(self.workers[at].name):
                    done[at].ended[ref] = Ended(Outcome.RETRY, "it failed")
                else:
                    done[at].succeeded.append(ref)
            for worker, outcomes in zip(self.workers, done, strict=True):
                if len(outcomes):
                    self.core.report(worker, outcomes, self.now, WALL)
            self.tailer.succeeded, self.tailer.ended = [], {}
            function = self.core.roster.functions["a"]
            if missing := 60 - sum(len(flow.items) for flow in function.flows.values()):
                self.number += 1
                ids = [f"{self.number}-{index}" for index in range(missing)]
                flight = Flight(self.number, self.number, [A] * missing, ids, [b""] * missing, [1] * missing)
                request = self.tailer.requests.send(self.now)
                self.core.push(self.tailer, flight, request, SIZES.scheduler, self.now)
            self.core.turn(self.now, WALL)
            for at, worker in enumerate(self.workers):
                for ref in sent(self.core, worker, self.now):
                    self.started[worker.name] += 1
                    # What fails is quick, so that it would get the most.
                    took = 0.01 if self.fails(worker.name) else 0.1
                    heapq.heappush(self.running, (self.now + took, at, ref))
        return self.started


def test_a_worker_that_fails_gets_nothing_is_probed_and_comes_back_slowly() -> None:
    # Given three workers, of which one begins to fail at once whatever it gets
    world = Workers(3)
    world.run(2)
    world.fails = lambda name: name == "w1"
    world.run(3)
    # Then it gets nothing, and the others all of it
    started = world.run(5)
    assert started["w1"] == 0 and min(started["w0"], started["w2"]) > 400
    # And as long as it fails it is given one item after each pause
    started = world.run(40)
    assert 1 <= started["w1"] <= 4
    # When it works again, then it is found out, and it has its share
    world.fails = lambda name: False
    world.run(60)
    started = world.run(5)
    assert started["w1"] > 0.8 * started["w0"]


def test_what_fails_everywhere_is_no_workers_fault() -> None:
    world = Workers(3)
    turns = itertools.count()
    world.fails = lambda name: next(turns) % 4 > 0
    world.run(5)
    started = world.run(2)
    assert min(started[f"w{n}"] for n in range(3)) > 100


def test_the_last_worker_is_never_out() -> None:
    # Given two workers of which one fails and is out
    world = Workers(2)
    world.run(2)
    world.fails = lambda name: name == "w0"
    world.run(3)
    assert world.run(1)["w0"] == 0
    # When the other one goes, then the one that is left is tried at once
    world.core.worker_draining(world.workers[1], world.now)
    world.fails = lambda name: False
    assert world.run(2)["w0"] > 0


def test_it_may_be_turned_off_and_then_one_worker_freezes_a_function_for_all() -> None:
    for pause, frozen in ((0.0, True), (10.0, False)):
        world = Workers(2, outlier_pause=pause)
        world.run(1)
        world.fails = lambda name: name == "w0"
        world.run(3)
        assert ("a" in world.core.outages.closed) is frozen


def test_people_see_who_is_out() -> None:
    world = Workers(2)
    world.run(1)
    world.fails = lambda name: name == "w0"
    world.run(4)
    states = {each.name: each.pools[0].health for each in inspect(world.core, "s", world.now, WALL).workers}
    assert states == {"w0": "out", "w1": "in"}


def test_who_comes_back_is_as_ill_as_it_was() -> None:
    # Given a worker that is out
    world = Workers(2)
    world.run(1)
    world.fails = lambda name: name == "w0"
    world.run(2)
    ill = world.workers[0]
    assert ill.pools["p"].limit == 0
    # When its connection breaks, and it comes back and says what it has
    world.core.worker_away(ill, world.now)
    world.run(0.5)
    world.core.worker_connected(ill, [FunctionSpec("a")], [PoolLimits("p", ("a",), 10, 10)], world.now)
    # Then it gets nothing before its pause is over
    assert ill.pools["p"].limit == 0 and world.run(2)["w0"] == 0
