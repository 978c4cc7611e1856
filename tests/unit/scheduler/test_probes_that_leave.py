"""Probes of closed downstreams that leave without a word of theirs: another one follows at once (FL14)."""

from __future__ import annotations

import pytest
from unit.scheduler.test_protection import CALLS, SIZES, WALL, A, World, throttled

from tailrace.model.function_spec import FunctionSpec
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import WorkerSession


def probing() -> World:
    """Makes a world whose downstream has closed, and answers again; its time is over, and the item that probes it is
    assigned and not sent yet."""
    world = World(slots=5)
    world.wanted = {A: 20}
    world.verdict = lambda kind, attempt: throttled(after=3.0)
    world.run(1.0)
    assert world.limit().state == "closed"
    world.verdict, world.takes = lambda kind, attempt: None, 1000.0
    world.run(1.0)
    world.now = world.limit().until + 0.1
    world.renew()
    world.core.turn(world.now, WALL)
    assert world.limit().state == "probing"
    assert len(world.worker.assignments) == len(world.worker.open) == 1
    return world


def another_worker(world: World) -> WorkerSession:
    """Loses the first worker for good, with all that it has, and attaches another one."""
    former = world.worker
    specs = [FunctionSpec(name, downstreams=calls) for name, calls in CALLS.items()]
    world.worker = world.core.attach_worker("v", "v", world.now)
    world.core.worker_connected(world.worker, specs, [PoolLimits("p", tuple(CALLS), 5, 5)], world.now)
    world.core.forget_worker(former, world.now)
    world.running, world.renewals, world.takes = [], 0, 0.02
    world.renew()
    return former


def followed_at_once(world: World) -> None:
    """Asserts that one probe alone follows, and opens the downstream."""
    world.takes = 0.2
    before = len(world.started)
    world.run(0.15)
    assert len(world.started) - before == 1
    world.run(1.0)
    assert world.limit().state == "open"


def test_a_probe_that_is_lost_with_its_worker_is_followed_by_another() -> None:
    # Given a probe that is out
    world = probing()
    world.run(0.5)
    assert len(world.worker.open) == 1 and not world.worker.assignments
    # When its worker is lost, Then the next one is out at once, and does not count as a failure
    assert another_worker(world).open == {}
    followed_at_once(world)


@pytest.mark.parametrize("turns", [0, 1, 30])
def test_a_probe_that_was_not_sent_is_followed_by_another(turns: int) -> None:
    # Given a probe that is assigned, and was noticed to be out or not yet
    world = probing()
    for _ in range(turns):
        world.now += 0.01
        world.core.turn(world.now, WALL)
    # When its worker goes away before it was sent to it, Then it was no probe
    world.core.worker_away(world.worker, world.now)
    assert not world.worker.open
    another_worker(world)
    followed_at_once(world)


@pytest.mark.parametrize("turns", [0, 1])
def test_a_probe_whose_lease_was_over_before_it_was_sent_is_followed_by_another(turns: int) -> None:
    world = probing()
    late = world.now + SIZES.scheduler
    for _ in range(turns):
        world.core.turn(late, WALL)
    assert world.core.assignment(world.worker, late) is None
    assert not world.worker.open
    world.now = late
    world.renew()
    world.push(*[A] * 5)
    followed_at_once(world)


def test_what_was_not_sent_has_not_started() -> None:
    # Given a limit of a downstream that is open
    world = World(slots=5)
    world.push(*[A] * 3)
    world.verdict = lambda kind, attempt: throttled()
    world.run(1.0)
    limit = world.limit()
    before = limit.running + limit.ended
    # When items were assigned and taken back, Then none of them counts as a start
    world.push(*[A] * 3)
    world.core.turn(world.now, WALL)
    assert world.worker.assignments
    world.core.worker_away(world.worker, world.now)
    assert limit.running + limit.ended == before


def test_a_probe_has_its_time_from_when_it_starts() -> None:
    # Given a closed downstream that nothing calls for longer than a probe may take
    world = World(slots=5)
    world.push(A)
    world.verdict = lambda kind, attempt: throttled(after=1.0)
    world.run(1.0)
    world.verdict, world.takes = lambda kind, attempt: None, 2.0
    world.run(60.0)
    assert world.limit().state == "probing"
    # When an item comes and takes a while, Then it is the probe, and opens it
    world.push(A)
    world.run(3.0)
    assert world.limit().state == "open"
