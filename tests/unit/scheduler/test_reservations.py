"""Reservations of limits (FL5): no flow keeps room empty that it cannot use for long, and no flow starves all the
same."""

from __future__ import annotations

from typing import Any

import pytest
from unit.scheduler.test_flow_limits import NAMES, drive
from unit.scheduler.test_scheduler_core import core, flight, worker_of

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.workload import Kind
from tailrace.scheduler.core import Core
from tailrace.scheduler.sessions import WorkerSession

G = Kind("g", 2, "", "t")


def place(quotas: list[Quota], kinds: list[Kind], **calls: tuple[str, ...]) -> tuple[Core, WorkerSession]:
    """A core with those quotas and many slots, in which so much of each kind waits that none comes to an end."""
    made = core(calls=65_536, lane_items=100_000)
    names = tuple([kind.function for kind in kinds])
    worker = worker_of(made, limit=1000, names=names)
    made.apply([], quotas, [FunctionSpec(name, downstreams=calls.get(name, ())) for name in names], 1, 0.0)
    tailer = made.attach_tailer("t", "t", 0.0, patient=True)
    made.tailer_connected(tailer)
    for number in range(1, 31):
        made.push(tailer, flight(number, *kinds * (900 // len(kinds))), 0, 1e9, 0.0)
    return made, worker


@pytest.mark.parametrize(("waiting", "most", "share"), [(2, 20, 0.9), (3, 4, 0.4)])
def test_flows_that_wait_for_their_own_full_limit_keep_of_a_shared_one_what_they_need(
    waiting: int, most: int, share: float
) -> None:
    # Given a tenant's limit with room, and functions of it that each have one long run, no room for more, and a backlog
    names = [f"f{number}" for number in range(waiting)]
    quotas = [Quota(tenant="t", concurrency=most), *(Quota(name, 1) for name in names)]
    made, worker = place(quotas, [*(Kind(name, 2, "", "t") for name in names), G])
    runs, ends = {**dict.fromkeys(names, 1000.0), "g": 0.5}, list[Any]()
    drive(made, worker, 1.0, 0.1, runs, ends)
    # When another function of it, without a limit of its own, has short runs for a minute
    started = drive(made, worker, 60.0, 0.1, runs, ends)[G]
    # Then it has the room that there is, but for the place that one of them keeps; or every second while if that is all
    assert started >= share * (most - waiting - (most - waiting > 1)) * 60 / 0.6


def test_a_flow_that_lays_down_its_reservation_gets_another_one() -> None:
    # Given a flow that needs two limits of one, of which one is full for long at first
    quotas = [Quota(downstream="d", concurrency=1), Quota(downstream="e", concurrency=1)]
    made, worker = place(quotas, [Kind(name) for name in NAMES], a=("d",), b=("e",), c=("d", "e"))
    ends: list[Any] = []
    drive(made, worker, 30.0, 0.01, {"a": 25.0, "b": 0.1727, "c": 0.1}, ends)
    # When it has room now and then again, Then it starts all the same
    started = drive(made, worker, 60.0, 0.01, {"a": 0.1313, "b": 0.1727, "c": 0.1}, ends)
    assert started[Kind("c")] >= 4
