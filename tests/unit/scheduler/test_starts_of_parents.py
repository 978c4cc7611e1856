"""Runs that wait for other work have started once, however often they wait and go on (FL12, FL14, FL15)."""

from __future__ import annotations

import pytest
from unit.scheduler.test_protection import A, World, throttled
from unit.scheduler.test_scheduler_core import WALL

from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Outcomes
from tailrace.scheduler.rules.limit import Limit


def running(world: World) -> list[int]:
    return [ref for ref in world.worker.open if ref not in world.worker.parents]


def wait_and_go_on(world: World, times: int) -> None:
    """Has all that runs wait for other work, and go on; so often."""
    refs = running(world)
    for _ in range(times):
        world.core.waits(world.worker, refs, [], world.now)
        world.core.waits(world.worker, [], refs, world.now)


def started(limit: Limit) -> int:
    return limit.ended + limit.running


def test_a_budget_of_retries_counts_first_attempts_once() -> None:
    # Given a function with a budget of retries, and ten first attempts that run long
    world = World(takes=1000.0)
    world.push(A)
    world.run(0.02)
    world.core.report(world.worker, Outcomes([], {running(world)[0]: Ended(Outcome.RETRY, "no")}), world.now, WALL)
    world.run(0.6)
    world.push(*[A] * 10)
    world.run(0.6)
    [budget] = world.core.protection.budgets.values()
    before = budget.firsts.started
    # When each of them waits for other work and goes on, again and again, and ends while it waits
    wait_and_go_on(world, 20)
    refs = running(world)
    world.core.waits(world.worker, refs, [], world.now)
    assert budget.firsts.started == before
    world.core.report(world.worker, Outcomes(refs, {}), world.now, WALL)
    # Then they are as many first attempts as before, and give retries no more
    assert budget.firsts.started == before
    world.run(0.6)
    assert budget.rate < 1.5


def test_a_run_that_goes_on_is_no_probe_and_no_start_at_a_downstream() -> None:
    # Given runs that call a downstream, which closes, and nothing else that waits
    world = World(takes=1000.0)
    world.push(*[A] * 5)
    world.run(0.02)
    first, *rest = running(world)
    world.core.report(world.worker, Outcomes([], {first: throttled(after=1.0)}), world.now, WALL)
    world.run(0.5)
    assert world.limit().state == "closed"
    before = started(world.limit())
    # When they wait and go on while a probe is awaited
    world.run(1.0)
    assert world.limit().state == "probing"
    wait_and_go_on(world, 3)
    world.run(0.5)
    # Then none of them counts as a start, and the probe may still come
    assert started(world.limit()) == before
    assert len(rest) == world.limit().running
    world.takes = 0.02
    world.push(A)
    world.run(0.5)
    assert world.limit().state == "open"


@pytest.mark.parametrize("outcome", [Outcome.SUCCESS, Outcome.FATAL])
def test_a_run_that_ends_while_it_waits_has_started_once(outcome: Outcome) -> None:
    world = World(takes=1000.0)
    world.push(*[A] * 5)
    world.run(0.02)
    first, *refs = running(world)
    world.core.report(world.worker, Outcomes([], {first: throttled()}), world.now, WALL)
    world.run(0.5)
    before = started(world.limit())
    world.core.waits(world.worker, refs, [], world.now)
    assert (started(world.limit()), world.limit().running) == (before, 0)
    world.core.report(world.worker, Outcomes([], {ref: Ended(outcome, "") for ref in refs}), world.now, WALL)
    assert (started(world.limit()), world.limit().running) == (before, 0)
