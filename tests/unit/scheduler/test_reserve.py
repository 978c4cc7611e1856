"""Reserves and opportunistic functions in the whole core: sure shares, and shares that are lent (FL18)."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from unit.scheduler.test_flow_limit_histories import Composed, keys
from unit.scheduler.test_flow_limits import drive
from unit.scheduler.test_scheduler_core import SIZES, WALL, core, flight, worker_of

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.unit_rate import UnitRate
from tailrace.model.workload import FLIGHT_ITEMS, Ended, Kind, Outcomes
from tailrace.scheduler.core import Core
from tailrace.scheduler.holds import holds
from tailrace.scheduler.rules.explain import Reason
from tailrace.scheduler.rules.flow import KIND
from tailrace.scheduler.rules.reserve import WINDOW, Reserve
from tailrace.scheduler.sessions import TailerSession

NUMBERS = count(1)


def push(made: Core, tailer: TailerSession, *kinds: Kind) -> None:
    """Pushes items, in flights of the size that there are."""
    now = made.limits.now
    for first in range(0, len(kinds), FLIGHT_ITEMS):
        part = kinds[first : first + FLIGHT_ITEMS]
        made.push(tailer, flight(next(NUMBERS), *part), tailer.requests.send(now), SIZES.scheduler, now)


def source_of(made: Core) -> TailerSession:
    """A session that may push as much as it likes."""
    tailer = made.attach_tailer("t", "t", 0.0, patient=True)
    made.tailer_connected(tailer)
    return tailer


def busy(made: Core) -> int:
    return sum(pool.assigned for worker in made.workers.values() for pool in worker.pools.values())


@pytest.fixture
def made() -> Core:
    return core(calls=65_536, lane_items=100_000)


def test_whoever_is_below_its_reserve_goes_before_all_others(made: Core) -> None:
    # Given ten slots, of which b is sure of four, and a backlog of a that weighs a hundred times as much
    worker, tailer = worker_of(made, limit=10), source_of(made)
    made.apply([], [Quota("a", weight=100.0), Quota("b", reserve=240.0)], [], 1, 0.0)
    push(made, tailer, *[Kind("a")] * 5000, *[Kind("b")] * 5000)
    # When both compete for twenty seconds, once what had gathered unused is spent
    ends: list[Any] = []
    drive(made, worker, 15.0, 0.01, {"a": 0.1, "b": 0.1}, ends)
    started = drive(made, worker, 20.0, 0.01, {"a": 0.1, "b": 0.1}, ends)
    # Then b has its four slots, and a the rest
    share = started[Kind("b")] / started.total()
    assert 0.38 < share < 0.46


def test_a_reserve_is_in_force_for_what_waits_already_and_gone_with_its_quota(made: Core) -> None:
    # Given a backlog of two functions of which one weighs a hundred times as much, under way
    worker, tailer = worker_of(made, limit=10), source_of(made)
    weights = [Quota("a", weight=100.0), Quota("b", weight=1.0)]
    made.apply([], weights, [], 1, 0.0)
    push(made, tailer, *[Kind("a")] * 8000, *[Kind("b")] * 8000)
    ends: list[Any] = []
    runs = {"a": 0.1, "b": 0.1}
    assert drive(made, worker, 5.0, 0.01, runs, ends)[Kind("b")] <= 60
    # When the light one gets a reserve of half of the slots, Then it has them
    made.apply([], [weights[0], Quota("b", reserve=300.0)], [], 2, made.limits.now)
    drive(made, worker, 12.0, 0.01, runs, ends)
    started = drive(made, worker, 10.0, 0.01, runs, ends)
    assert 0.45 < started[Kind("b")] / started.total() < 0.58
    # And when that is taken away, and given and taken again, it has its weight
    for quotas in (weights, [weights[0], Quota("b", reserve=300.0)], weights):
        made.apply([], quotas, [], 3, made.limits.now)
        drive(made, worker, 12.0, 0.01, runs, ends)
    started = drive(made, worker, 5.0, 0.01, runs, ends)
    assert started[Kind("b")] / started.total() < 0.1


def test_a_reserve_that_is_not_used_is_lent_and_comes_back_with_the_next_runs_that_end(made: Core) -> None:
    worker, tailer = worker_of(made, limit=10), source_of(made)
    made.apply([], [Quota("b", reserve=300.0)], [], 1, 0.0)
    push(made, tailer, *[Kind("a")] * 5000)
    ends: list[Any] = []
    # Given that a has all slots
    assert drive(made, worker, 5.0, 0.01, {"a": 0.1, "b": 0.1}, ends)[Kind("a")] >= 480
    # When b comes
    push(made, tailer, *[Kind("b")] * 500)
    # Then it has what it is sure of within one run, and more from what it did not use before
    started = drive(made, worker, 1.0, 0.01, {"a": 0.1, "b": 0.1}, ends)
    assert started[Kind("b")] >= 45


def test_a_reserve_that_is_not_lent_stays_empty_for_whoever_cannot_wait(made: Core) -> None:
    # Given runs of ten seconds, and a function that is sure of two slots, which are not lent
    worker, tailer = worker_of(made, limit=10), source_of(made)
    made.apply([], [Quota("b", reserve=120.0, lend=False)], [], 1, 0.0)
    push(made, tailer, Kind("b"))
    ends: list[Any] = []
    drive(made, worker, 1.0, 0.01, {"a": 10.0, "b": 0.1}, ends)
    push(made, tailer, *[Kind("a")] * 100)
    drive(made, worker, 5.0, 0.01, {"a": 10.0, "b": 0.1}, ends)
    # Then the others leave them empty
    assert busy(made) == 8
    [hold] = [each for each in holds(made, Kind("a"), "t", made.limits.now, WALL) if each.reason is not Reason.TURN]
    assert (hold.reason, hold.detail[:9]) == (Reason.RESERVE, "2 of 10 s")
    # And it starts at once, where a neighbour's run would have kept it waiting
    push(made, tailer, Kind("b"), Kind("b"))
    assert drive(made, worker, 0.02, 0.01, {"a": 10.0, "b": 0.1}, ends)[Kind("b")] == 2


def test_a_reserve_that_is_not_lent_is_kept_before_the_first_item_of_its_function_came(made: Core) -> None:
    # Given a scheduler that just started, a backlog of long runs, and a function that is sure of two slots
    worker, tailer = worker_of(made, limit=10), source_of(made)
    made.apply([], [Quota("b", reserve=120.0, lend=False)], [], 1, 0.0)
    push(made, tailer, *[Kind("a")] * 100)
    ends: list[Any] = []
    drive(made, worker, 2.0, 0.01, {"a": 1000.0, "b": 0.1}, ends)
    assert busy(made) == 8
    # When its first item comes, Then it starts at once
    push(made, tailer, Kind("b"))
    assert drive(made, worker, 0.02, 0.01, {"a": 1000.0, "b": 0.1}, ends)[Kind("b")] == 1


def test_what_had_a_reserve_before_an_account_was_throttled_uses_it_up_no_more(made: Core) -> None:
    # Given a function with a reserve of which several run, beside a backlog
    worker, tailer = worker_of(made, limit=10), source_of(made)
    specs = [FunctionSpec("a"), FunctionSpec("b", downstreams=("stripe",))]
    made.apply([], [Quota("b", reserve=300.0)], specs, 1, 0.0)
    push(made, tailer, *[Kind("a")] * 5000, *[Kind("b", tenant="x")] * 30)
    ends: list[Any] = []
    runs = {"a": 0.1, "b": 1.0}
    drive(made, worker, 2.5, 0.01, runs, ends)
    running = [each for each, item in worker.open.items() if item[KIND].function == "b"]
    assert len(running) >= 4 and made.limits.metering
    # When the account of a tenant is throttled, so that tenants are told apart, and all of it ended long ago
    told = Ended(Outcome.THROTTLED, "429", downstream="stripe", scope="tenant")
    ends[:] = [(at, each) for at, each in ends if each != running[0]]
    made.report(worker, Outcomes([], {running[0]: told}), made.limits.now, WALL)
    drive(made, worker, 40.0, 0.01, runs, ends)
    # Then the reserve is full again, and only flows that there are have it
    [reserve] = made.limits.charges.reserves.values()
    assert reserve.left(made.limits.now) == pytest.approx(5 * WINDOW, rel=0.05)
    known = {flow for part in made.roster.functions.values() for flow in part.all_flows}
    assert reserve.flows.keys() <= known and made.limits.metering


def test_a_tenants_reserve_is_of_all_functions_that_it_uses(made: Core) -> None:
    worker, tailer = worker_of(made, limit=10), source_of(made)
    made.apply([], [Quota(tenant="x", reserve=300.0), Quota(per="tenant", weight=1.0)], [], 1, 0.0)
    crowd = [Kind("a", tenant=f"t{number % 50}") for number in range(5000)]
    push(made, tailer, *crowd, *[Kind("b", tenant="x")] * 2000, *[Kind("a", tenant="x")] * 2000)
    started = drive(made, worker, 20.0, 0.01, {"a": 0.1, "b": 0.1}, [])
    share = sum(count for kind, count in started.items() if kind.tenant == "x") / started.total()
    assert 0.48 < share < 0.75  # b is half of all turns anyway, and nobody else uses it


def test_a_load_step_of_four_times_keeps_slots_busy_and_room_for_the_next_one(made: Core) -> None:
    # Given a hundred slots, a function of which load comes, and an endless backlog of an opportunistic one
    worker, tailer = worker_of(made, limit=100), source_of(made)
    made.apply([], [Quota("a", reserve=6000.0 * 0.7), Quota("c", opportunistic=True)], [], 1, 0.0)
    push(made, tailer, *[Kind("c")] * 30_000)
    ends: list[Any] = []
    for load in (20, 80, 20):  # items in the system on average, of 100 ms: 200, 800, 200 a second
        for second in range(15):
            for _ in range(10):
                push(made, tailer, *[Kind("a")] * load)
                started = drive(made, worker, 0.1, 0.01, {"a": 0.1, "c": 0.1}, ends)
                if second >= 10:
                    # Then within ten seconds slots are 70 to 95 % busy, and what comes starts at once
                    assert 70 <= busy(made) <= 95
                    assert started[Kind("a")] >= load * 0.9


def test_what_is_opportunistic_runs_only_in_what_others_leave(made: Core) -> None:
    worker, tailer = worker_of(made, limit=10), source_of(made)
    made.apply([], [Quota("c", opportunistic=True)], [], 1, 0.0)
    push(made, tailer, *[Kind("c")] * 1000, *[Kind("a")] * 400)
    ends: list[Any] = []
    started = drive(made, worker, 4.0, 0.01, {"a": 0.1, "c": 0.1}, ends)
    assert started[Kind("a")] >= 370 and started[Kind("c")] <= 20
    started = drive(made, worker, 4.0, 0.01, {"a": 0.1, "c": 0.1}, ends)
    assert started[Kind("c")] >= 300 and busy(made) == 9  # a tenth is left for whoever comes next
    [hold] = [each for each in holds(made, Kind("c"), "t", made.limits.now, WALL) if each.reason is not Reason.TURN]
    assert (hold.reason, "9 of 10 slots are busy" in hold.detail) == (Reason.RESERVE, True)
    # And it is an ordinary function again when its quota says so
    made.apply([], [], [], 2, made.limits.now)
    drive(made, worker, 0.5, 0.01, {"a": 0.1, "c": 0.1}, ends)
    assert busy(made) == 10


@pytest.mark.parametrize(("slots", "reserve"), [(1, 0.0), (10, 540.0)])
def test_what_is_opportunistic_runs_also_where_there_is_one_slot_for_it(made: Core, slots: int, reserve: float) -> None:
    # Given a worker of one slot, or one of which all slots but one are kept
    worker, tailer = worker_of(made, limit=slots), source_of(made)
    quotas = [Quota("c", opportunistic=True)]
    quotas += [Quota("b", reserve=reserve, lend=False)] if reserve else []
    made.apply([], quotas, [], 1, 0.0)
    # When nobody else has anything, Then it runs there
    push(made, tailer, *[Kind("c")] * 100)
    assert drive(made, worker, 2.0, 0.01, {"c": 0.1}, [])[Kind("c")] >= 15
    assert busy(made) == 1
    [hold] = [each for each in holds(made, Kind("c"), "t", made.limits.now, WALL) if each.reason is Reason.RESERVE]
    assert f"1 of {slots} slots are busy" in hold.detail


@given(st.floats(1, 1e6), st.lists(st.tuples(st.floats(0, 30), st.floats(-100, 100)), max_size=50))
def test_a_reserve_is_within_a_window_of_zero_whatever_is_used(
    per_minute: float, steps: list[tuple[float, float]]
) -> None:
    reserve, now = Reserve("f", per_minute, lend=True, now=0.0), 0.0
    for passed, cost in steps:
        now += passed
        reserve.left(now)
        reserve.take(cost)
        assert abs(reserve.left(now)) <= reserve.slots * WINDOW * (1 + 1e-9)


reserves = st.builds(
    lambda key, concurrency, reserve: Quota(concurrency=concurrency, reserve=reserve, **key),
    keys.filter(lambda key: not {"per", "downstream", "collection"} & key.keys()),
    st.integers(0, 4),
    st.sampled_from([0.0, 30.0, 120.0, 6000.0]),
)


class Reserved(Composed):
    """Histories with reserves: limits hold, and nothing idles that could run."""

    @rule(quota=reserves)
    def reserve(self, quota: Quota) -> None:
        self.apply(quota)


TestReserved = Reserved.TestCase
TestReserved.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize(
    "limited", [Quota(downstream="d", concurrency=1), Quota(downstream="d", units=(UnitRate("rows", 10.0, 1.0),))]
)
def test_what_is_opportunistic_keeps_no_share_of_a_limit_while_others_have_the_slots(
    made: Core, limited: Quota
) -> None:
    # Given an opportunistic function and another one that call a downstream, and a third one that fills all slots
    worker, tailer = worker_of(made, limit=10), source_of(made)
    specs = [FunctionSpec("a", downstreams=("d",)), FunctionSpec("b", downstreams=("d",))]
    made.apply([], [limited, Quota("a", opportunistic=True)], specs, 1, 0.0)
    push(made, tailer, *[Kind("a")] * 400)
    runs = {"a": 0.1, "b": 0.1, "c": 0.1}
    ends: list[Any] = []
    drive(made, worker, 1.0, 0.01, runs, ends)
    push(made, tailer, *[Kind("b")] * 400, *[Kind("c")] * 4000)
    # When all compete
    started = drive(made, worker, 20.0, 0.01, runs, ends)
    # Then the downstream is used all the time by who may use it
    assert started[Kind("b")] > 100
    assert started[Kind("a")] <= 2


def test_who_waits_for_slots_that_are_kept_keeps_no_share_of_a_limit(made: Core) -> None:
    # Given slots that are kept for a reserve that is not lent, and a limit that both who has it and who has not need
    worker, tailer = worker_of(made, limit=10), source_of(made)
    specs = [FunctionSpec("a", downstreams=("d",)), FunctionSpec("b", downstreams=("d",))]
    quotas = [Quota(downstream="d", concurrency=1), Quota("b", reserve=300.0, lend=False)]
    made.apply([], quotas, specs, 1, 0.0)
    push(made, tailer, *[Kind("a")] * 400, *[Kind("b")] * 400)
    runs, ends = {"a": 0.1, "b": 0.1, "c": 1000.0}, list[Any]()
    drive(made, worker, 1.0, 0.01, runs, ends)
    push(made, tailer, *[Kind("c")] * 400)
    # When what others may have is taken for long, Then whoever has the reserve has the limit
    started = drive(made, worker, 20.0, 0.01, runs, ends)
    assert started[Kind("b")] > 100
