"""Limits that compose, in the whole core (docs/flow-control.md)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from unit.scheduler.test_scheduler_core import SIZES, WALL, core, flight, sent, tailer_of, worker_of
from unit.scheduler.test_unit_rates import turned

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Kind, Outcomes
from tailrace.scheduler.core import Core
from tailrace.scheduler.holds import holds
from tailrace.scheduler.rules.explain import Reason
from tailrace.scheduler.sessions import WorkerSession
from tailrace.scheduler.view import explain
from tailrace.tailers.rules.credit import Credit

NAMES, TENANTS, DOWNSTREAMS = ("a", "b", "c"), ("", "t", "u", "v"), ("d", "e")
CALLS = {"a": ("d",), "b": ("d", "e"), "c": ()}


def drive(
    made: Core, worker: WorkerSession, seconds: float, step: float, runs: dict[str, float], until: list[Any]
) -> Counter[Kind]:
    """Lets time pass; each run ends after the time of its function. Returns how many of each kind started."""
    started = Counter[Kind]()
    ends: list[tuple[float, int]] = until
    now = made.limits.now
    for _ in range(int(seconds / step)):
        now += step
        over = [each for at, each in ends if at <= now]
        ends[:] = [(at, each) for at, each in ends if at > now]
        if over:
            made.report(worker, Outcomes(over, {}), now, WALL)
        made.lease_requested(worker, worker.granted.number + 1, now)
        tailer = next(iter(made.tailers.values()))
        made.granted(tailer, tailer.requests.send(now), SIZES.scheduler, list(tailer.held.flights))
        if int(now) > int(now - step):
            made.tick(now, WALL)
        made.limits.now = now
        made.turn(now, WALL)
        for each in sent(made, worker, now):
            kind = worker.open[each][4]
            started[kind] += 1
            ends.append((now + runs[kind.function], each))
    return started


def test_a_batch_starts_no_more_items_than_its_rate_has_tokens() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    made.apply([], [Quota("a", rate=1.0, burst=3.0)], [], 1, 0.0)
    # When more come at once than the burst, though there is a slot for each
    made.push(tailer, flight(1, *[Kind("a")] * 5), 0, 1e9, 0.0)
    # Then as many start as there are tokens
    assert len(turned(made, worker, 0.0)) == 3


def test_a_bucket_gathers_no_more_than_its_burst_however_long_nothing_starts() -> None:
    # Given a flow that waits for tokens
    made = core()
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    made.apply([], [Quota("a", rate=1.0, burst=3.0)], [], 1, 0.0)
    made.push(tailer, flight(1, *[Kind("a")] * 10), 0, 1e9, 0.0)
    assert len(turned(made, worker, 0.0)) == 3
    # When nobody looks for so long that there could be one for each of them, Then a burst starts
    assert len(turned(made, worker, 100.0)) == 3


def test_each_end_makes_room_for_one_that_waits() -> None:
    # Given a limit of four, and others that wait for room in it
    made = core()
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    made.apply([], [Quota("a", concurrency=4)], [], 1, 0.0)
    made.push(tailer, flight(1, *[Kind("a")] * 10), 0, 1e9, 0.0)
    first, second, third, _ = turned(made, worker, 0.0)
    # When one ends, Then one starts; and two when two end together
    for ended in ([first], [second, third]):
        made.report(worker, Outcomes(ended, {}), 0.0, WALL)
        assert len(turned(made, worker, 0.0)) == len(ended)


def test_a_flow_that_needs_two_limits_is_not_starved_by_those_that_need_one() -> None:
    # Given flows {A}, {B} and {A, B}, where a third of them needs both of two limits of one
    made = core(calls=10_000)
    worker = worker_of(made, limit=1000, names=NAMES)
    specs = [FunctionSpec("a", downstreams=("d",)), FunctionSpec("b", downstreams=("e",))]
    specs.append(FunctionSpec("c", downstreams=("d", "e")))
    made.apply([], [Quota(downstream="d", concurrency=1), Quota(downstream="e", concurrency=1)], specs, 1, 0.0)
    tailer = made.attach_tailer("t", "t", 0.0, patient=True)  # nothing of it goes back
    made.tailer_connected(tailer)
    for number in range(1, 9):
        kinds = [Kind(name) for name in NAMES] * 80
        made.push(tailer, flight(number, *kinds), 0, 1e9, 0.0)
    # When all of them run for a while, never in step
    started = drive(made, worker, 30.0, 0.001, {"a": 0.1313, "b": 0.1727, "c": 0.1}, [])
    # Then the third one starts at least every three or four seconds
    assert started[Kind("c")] >= 7
    assert started[Kind("a")] > 20 and started[Kind("b")] > 20


def test_a_flood_of_one_tenant_delays_no_other_tenants_next_item() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=20), tailer_of(made)
    made.push(tailer, flight(1, *[Kind("a", 1, "", "flood")] * 200), 0, 1e9, 0.0)
    made.turn(0.0, WALL)
    first = list(sent(made, worker, 0.0))
    made.push(tailer, flight(2, Kind("a", 1, "", "small")), 0, 1e9, 0.0)
    made.report(worker, Outcomes(first[:2], {}), 0.01, WALL)
    made.turn(0.01, WALL)
    assert {worker.open[each][4].tenant for each in sent(made, worker, 0.01)} >= {"small"}


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 4.0), (3.0, 2.0)])
def test_shares_follow_the_weights_by_the_time_that_runs_take(weights: tuple[float, float]) -> None:
    # Given two functions that always have more, one of which runs four times as long
    made = core(calls=65_536)
    worker = worker_of(made, limit=40, names=("a", "b"))
    made.apply([], [Quota("a", weight=weights[0]), Quota("b", weight=weights[1])], [], 1, 0.0)
    tailer = made.attach_tailer("t", "t", 0.0, patient=True)
    made.tailer_connected(tailer)
    for number in range(1, 21):
        made.push(tailer, flight(number, *[Kind("a"), Kind("b")] * 500), 0, 1e9, 0.0)
    runs, ends = {"a": 0.05, "b": 0.2}, list[Any]()
    drive(made, worker, 5.0, 0.01, runs, ends)
    started = drive(made, worker, 10.0, 0.01, runs, ends)
    # Then the time that each holds is as its weight
    took = [started[Kind("a")] * 0.05, started[Kind("b")] * 0.2]
    share, wanted = took[0] / sum(took), weights[0] / sum(weights)
    assert abs(share - wanted) < 0.05


def test_what_workers_still_run_of_former_sessions_counts_until_they_say_that_it_is_over() -> None:
    # Given a limit of four, and a worker that says that it still runs three of before a restart
    made = core()
    made.apply([], [Quota("a", concurrency=4)], [], 1, 0.0)
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    made.limits.carry(worker, Counter({Kind("a"): 3, Kind("b"): 5}), 0.0)
    made.push(tailer, flight(1, *[Kind("a")] * 10), 0, 1e9, 0.0)
    # Then one more starts, also when quotas change
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 1
    made.apply([], [Quota("a", concurrency=5)], [], 2, 0.0)
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 1
    # And as many as are over, each time
    made.limits.carry(worker, Counter({Kind("a"): 1}), 0.0)
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 2
    # And all the rest when its worker is gone for good
    made.worker_away(worker, 0.0)
    other = worker_of(made, limit=100, session="v")
    made.tick(1e6, WALL)
    assert worker.session not in made.workers
    assert sum(limit.running for limit in made.limits.charges.all()) == len(other.open)


def test_after_a_restart_nothing_starts_until_former_workers_had_their_time_where_a_concurrency_is_limited() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    made.limits.rejoining_until = 2.0
    # Given no such limit, it starts at once
    made.push(tailer, flight(1, Kind("b")), 0, 1e9, 0.0)
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 1
    # Given one
    made.apply([], [Quota("a", concurrency=4)], [], 1, 0.0)
    made.push(tailer, flight(2, Kind("a"), Kind("b")), 0, 1e9, 0.0)
    made.turn(0.5, WALL)
    assert not sent(made, worker, 0.5) and made.next_at == 2.0
    assert [hold.reason for hold in holds(made, Kind("a"), "", 0.5, WALL)] == [Reason.REJOINING]
    # When the time is over, Then all start
    made.turn(2.0, WALL)
    assert len(sent(made, worker, 2.0)) == 2


def test_invented_tenants_share_one_limit() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    made.apply([], [Quota(per="tenant", concurrency=2, max_values=3)], [], 1, 0.0)
    tenants = ["", *(f"t{number}" for number in range(20))]
    made.push(tailer, flight(1, *[Kind("a", 1, "", tenant) for tenant in tenants for _ in range(3)]), 0, 1e9, 0.0)
    made.turn(0.0, WALL)
    running = Counter(worker.open[each][4].tenant for each in sent(made, worker, 0.0))
    assert max(running.values()) == 2
    assert sum(running.values()) <= 2 * 3 + 2


def test_a_lower_rank_never_goes_before_a_higher_one_at_a_limit() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    made.apply([], [Quota("a", 2)], [], 1, 0.0)
    made.push(tailer, flight(1, *[Kind("a", 3)] * 10, *[Kind("a", 0)] * 4), 0, 1e9, 0.0)
    made.turn(0.0, WALL)
    ranks: list[int] = []
    for _ in range(2):
        out = list(sent(made, worker, 0.0))
        ranks += [worker.open[each][4].priority for each in out]
        made.report(worker, Outcomes(out, {}), 0.0, WALL)
        made.turn(0.0, WALL)
    assert ranks == [0, 0, 0, 0]


def test_explain_names_every_limit_that_has_no_room_and_how_full_it_is() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=100), tailer_of(made)
    specs = [FunctionSpec("a", downstreams=("stripe",))]
    quotas = [Quota("a", 2), Quota(downstream="stripe", rate=0.5, burst=2), Quota(tenant="acme", concurrency=9)]
    made.apply([], quotas, specs, 1, 0.0)
    made.push(tailer, flight(1, *[Kind("a", 1, "", "acme")] * 4), 0, 1e9, 0.0)
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 2
    found = explain(made, "1-3", 0.5, WALL)
    assert (found.state, found.reason, found.ahead) == ("waiting", "concurrency", 1)
    assert "the limit of function a is used up: 2 of 2 run" in found.detail
    assert "downstream stripe" in found.detail and "the next token comes in 1.5 s" in found.detail
    assert "acme" not in found.detail


def test_a_blocked_flow_goes_back_but_for_what_may_start_soon_and_is_closed_exactly() -> None:
    # Given a tenant that floods far beyond its limit, beside another one
    made = core()
    worker, tailer = worker_of(made, limit=200), tailer_of(made)
    made.apply([], [Quota(tenant="flood", concurrency=2)], [], 1, 0.0)
    made.push(tailer, flight(1, *[Kind("a", 1, "", "flood")] * 100), 0, 1e9, 0.0)
    made.turn(0.0, WALL)
    out = list(sent(made, worker, 0.0))
    # When it was blocked for two looks
    for now in (1.0, 2.0):
        made.tick(now, WALL)
        made.turn(now, WALL)
    # Then most of it goes back at no charge, and its kind alone is closed, from its rank down
    assert {end.outcome for end in tailer.ended.values()} == {Outcome.HELD} and len(tailer.ended) == 82
    assert tailer.closed is not None
    (closed,) = tailer.closed
    assert closed.covers(Kind("a", 1, "", "flood")) and closed.covers(Kind("a", 2, "", "flood"))
    assert closed.covers(Kind("a", 1, "x", "flood"))  # no quota tells its collections apart
    for other in (Kind("a", 0, "", "flood"), Kind("a", 1, "", "other"), Kind("a")):
        assert not closed.covers(other)
    assert "2 of 2 run" in closed.reason
    # And it opens again when half of the rest has started
    for _ in range(5):
        made.report(worker, Outcomes(out, {}), 2.5, WALL)
        made.turn(2.5, WALL)
        out = list(sent(made, worker, 2.5))
    made.tick(3.0, WALL)
    assert tailer.closed == frozenset()


@pytest.mark.parametrize("apart", ["", "collections", "tenants", "both"])
@pytest.mark.parametrize("kind", [Kind("a", 1, collection, tenant) for collection in ("", "c") for tenant in ("", "t")])
def test_a_closed_flow_closes_what_waits_in_it_and_nothing_else(kind: Kind, apart: str) -> None:
    # Given quotas that tell collections or tenants of a function apart, or neither, and a flood of one kind
    made = core()
    worker, tailer = worker_of(made, limit=200), tailer_of(made)
    quotas = [Quota("a", concurrency=2)]
    quotas += [Quota("a", collection="other", weight=2.0)] if apart in ("collections", "both") else []
    quotas += [Quota("a", per="tenant", weight=2.0)] if apart in ("tenants", "both") else []
    made.apply([], quotas, [], 1, 0.0)
    made.push(tailer, flight(1, *[kind] * 100), 0, 1e9, 0.0)
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 2
    # When it is blocked for two looks, Then the tailer is told a cell that its own items have, and no others
    for now in (1.0, 2.0):
        made.tick(now, WALL)
    credit = Credit()
    credit.close(tailer.closed or ())
    assert len(credit.closed) == 1
    for collection in ("", "c", "d"):
        for tenant in ("", "t", "u"):
            mine = collection == kind.collection or apart in ("", "tenants")
            mine = mine and (tenant == kind.tenant or apart in ("", "collections"))
            assert credit.is_closed(Kind("a", 1, collection, tenant)) is mine
    assert not credit.is_closed(kind._replace(priority=0)) and not credit.is_closed(kind._replace(function="b"))


def test_a_closed_flow_opens_by_itself() -> None:
    made = core()
    worker, tailer = worker_of(made, limit=200), tailer_of(made)
    made.apply([], [Quota("a", 1)], [], 1, 0.0)
    made.push(tailer, flight(1, *[Kind("a")] * 100), 0, 1e9, 0.0)
    made.turn(0.0, WALL)
    assert len(sent(made, worker, 0.0)) == 1
    for now in (1.0, 2.0):
        made.tick(now, WALL)
    assert tailer.closed
    made.tick(12.5, WALL)
    assert not tailer.closed
