"""Flows and limits of tenants that were seen once are forgotten, whatever else happens (FL1, FL4)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from unit.scheduler.test_scheduler_core import WALL, core, flight, sent, worker_of

from tailrace.model.limits import Quota
from tailrace.model.workload import Kind, Outcomes
from tailrace.scheduler import intake
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.flow import KIND
from tailrace.scheduler.sessions import WorkerSession
from tailrace.scheduler.view import explain_kind


class Place:
    """A core with one worker, and a patient tailer to which tenants come and go."""

    def __init__(self, *quotas: Quota) -> None:
        self.now, self.number, self.version = 0.0, 0, 0
        self.quotas = quotas
        self.core: Core = core(calls=100_000)
        self.worker: WorkerSession = worker_of(self.core, limit=1000)
        self.tailer: Any = self.core.attach_tailer("t", "t", 0.0, patient=True)
        self.core.tailer_connected(self.tailer)
        self.snapshot()

    def snapshot(self) -> None:
        """Applies control anew, as it is whenever anybody pauses anything."""
        self.version += 1
        self.core.apply([], self.quotas, [], self.version, self.now)

    def push(self, *tenants: str) -> list[int]:
        """Pushes one item of each tenant. Returns those that start."""
        self.number += 1
        self.core.push(
            self.tailer, flight(self.number, *[Kind("a", 2, "", name) for name in tenants]), 0, 1e9, self.now
        )
        return self.turn()

    def turn(self) -> list[int]:
        self.core.turn(self.now, WALL)
        return list(sent(self.core, self.worker, self.now))

    def end(self, *refs: int) -> list[int]:
        self.core.report(self.worker, Outcomes(list(refs), {}), self.now, WALL)
        return self.turn()

    def pass_time(self, seconds: float) -> None:
        """Lets seconds pass, with a look every one."""
        until = self.now + seconds
        while self.now < until:
            self.now += 1.0
            self.core.lease_requested(self.worker, self.worker.granted.number + 1, self.now)
            self.core.grants(self.worker, self.now)
            self.core.tick(self.now, WALL)
            self.turn()

    @property
    def flows(self) -> int:
        return sum([len(function.all_flows) for function in self.core.roster.functions.values()])

    @property
    def limits(self) -> int:
        return len(list(self.core.limits.charges.all()))


EACH = Quota(per="tenant", concurrency=1, max_values=3)


@pytest.mark.parametrize("snapshots", [False, True])
def test_flows_of_ever_new_tenants_are_forgotten_whatever_is_told_meanwhile(
    snapshots: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given tenants that come once, and go
    monkeypatch.setattr(intake, "IDLE_FLOWS", 100)
    place = Place(Quota(per="tenant", concurrency=1))
    lasting = place.push("lasting")
    for number in range(40):
        place.end(*place.push(*[f"{number}-{each}" for each in range(20)]))
        # When control is told again and again, Then they are forgotten all the same, and their limits with them
        if snapshots:
            place.snapshot()
        place.pass_time(1.0)
        assert place.flows <= 121
        assert place.limits <= 121
    # And what runs is counted still
    assert place.push("lasting") == []
    assert len(place.end(*lasting)) == 1


def test_what_is_asked_of_invented_tenants_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "IDLE_FLOWS", 100)
    place = Place(Quota(per="tenant", concurrency=1))
    for number in range(1000):
        explain_kind(place.core, Kind("a", 2, "", f"t{number}"), "", place.now, WALL)
        if number % 10 == 9:
            place.pass_time(1.0)
    assert place.limits <= 121
    assert place.core.limits.remembered <= 121


def test_tenants_that_are_long_gone_leave_their_place_to_others() -> None:
    # Given as many tenants as are counted apart, which come once and go
    place = Place(EACH)
    place.end(*place.push("t", "u", "v"))
    # When others come a while later, Then each of them has a limit of its own
    place.pass_time(30.0)
    assert len(place.push("x", "y", "z", "x", "y", "z")) == 3


def test_tenants_that_came_too_many_have_a_limit_of_their_own_once_there_is_place() -> None:
    # Given more tenants than are counted apart, of which the last ones share one limit
    place = Place(EACH)
    running = place.push("t", "u", "v")
    running += place.push("x", "y")
    assert len(running) == 4
    # When all of that is long over
    place.end(*place.end(*running))
    place.pass_time(30.0)
    # Then those who shared have each its own
    assert len(place.push("x", "y")) == 2


def test_tenants_that_share_a_limit_without_a_pause_have_their_own_once_there_is_place() -> None:
    # Given more tenants than are counted apart, of which those that share one limit have always something that waits
    place = Place(EACH)
    first = place.push("t", "u", "v")
    assert len(place.push("x", "y", "x", "y")) == 1
    # When the others are gone
    place.end(*first)
    place.pass_time(30.0)
    # Then those two have each its own, and neither has more than that
    assert Counter(item[KIND].tenant for item in place.worker.open.values()) == {"x": 1, "y": 1}


def test_a_tenant_that_runs_or_waits_keeps_its_limit_and_the_bound_holds() -> None:
    place = Place(EACH)
    running = place.push("t", "u", "v")
    place.push("t")
    place.pass_time(30.0)
    # Given all places are taken, When invented tenants come, Then they share one limit all the time
    for number in range(20):
        place.pass_time(5.0)
        place.push(f"x{number}", f"y{number}")
        assert place.limits <= 4
        assert len(place.worker.open) == 4
    # And whoever has its own goes on within it
    assert place.push("t", "u", "v") == []
    assert len(place.end(*running)) == 3


def test_a_run_that_waits_for_other_work_keeps_its_limit() -> None:
    # Given one that waits for other work, so that its limit has room
    place = Place(EACH)
    [waiting] = place.push("t")
    place.core.waits(place.worker, [waiting], [], place.now)
    # When others want all places there are, again and again
    for number in range(10):
        place.pass_time(5.0)
        place.end(*place.push(*[f"x{number}-{each}" for each in range(4)]))
    # Then it goes on under its own limit, which is full then
    place.core.waits(place.worker, [], [waiting], place.now)
    assert place.push("t") == []
    assert len(place.end(waiting)) == 1
