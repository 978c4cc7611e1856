"""Pools whose processes cannot load their functions: they get nothing, and who asks hears why."""

from __future__ import annotations

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Flight, Kind
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.core import Core
from tailrace.scheduler.holds import holds
from tailrace.scheduler.rules.placement import PoolLimits


def test_a_pool_that_can_load_nothing_is_no_place_for_its_functions_until_it_can() -> None:
    # Given a worker whose pool could load its functions, and cannot any more
    core = Core(SchedulerConfig(), LeaseSizes(), ready=True)
    tailer = core.attach_tailer("t", "t", 0.0)
    core.tailer_connected(tailer)
    worker = core.attach_worker("w", "w", 0.0)
    core.worker_connected(worker, [FunctionSpec("f")], [PoolLimits("default", ("f",), 10, 10)], 0.0)
    core.worker_pools(worker, [PoolLimits("default", (), 0, 0, failure="tasks.py:1: SyntaxError")], 0.0)
    # When something is pushed, then it waits
    core.push(tailer, Flight(1, 1, [Kind("f")], ["x"], [b""], [1]), 0, 100, 0.0)
    core.turn(0.0, 1000.0)
    assert core.assignment(worker, 0.0) is None
    # And who asks hears why
    (hold,) = [each for each in holds(core, Kind("f"), "", 0.0, 1000.0) if each.reason == "no_worker"]
    assert "w cannot load it: tasks.py:1: SyntaxError" in hold.detail
    # And it goes back when that lasts, and no credit is given for more
    core.granted(tailer, 1, 100, [1])
    worker.granted.requested(1, 39.0)
    core.tick(40.0, 1040.0)
    assert [end.outcome for end in tailer.ended.values()] == [Outcome.HELD]
    assert not core.credits
    # And when the functions can be loaded again, then what comes is assigned
    core.worker_pools(worker, [PoolLimits("default", (), 10, 10)], 40.0)
    core.push(tailer, Flight(2, 2, [Kind("f")], ["x"], [b""], [1]), 0, 100, 40.0)
    core.turn(40.0, 1040.0)
    assert core.assignment(worker, 40.0) is not None
