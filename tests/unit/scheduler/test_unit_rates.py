"""Rates in units of one's own (FL20), in the whole core."""

from __future__ import annotations

import math
from typing import Any

import pytest
from unit.scheduler.test_scheduler_core import WALL, core, flight, sent, tailer_of, worker_of

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.unit_rate import UnitRate
from tailrace.model.workload import Ended, Extra, Kind, Outcomes
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.flow import KIND
from tailrace.scheduler.rules.unit_limit import UnitLimit
from tailrace.scheduler.sessions import WorkerSession
from tailrace.scheduler.view import explain, inspect

CALLS = {"a": ("d",), "b": ("d", "e"), "c": ()}


def measured(*quotas: Quota, limit: int = 1000) -> tuple[Core, WorkerSession, Any]:
    """A core whose functions call `openai`, with a worker and a patient tailer."""
    made = core(calls=100_000)
    worker = worker_of(made, limit=limit)
    specs = [FunctionSpec(name, downstreams=("openai",)) for name in ("a", "b")]
    made.apply([], quotas, specs, 1, 0.0)
    tailer = made.attach_tailer("t", "t", 0.0, patient=True)
    made.tailer_connected(tailer)
    return made, worker, tailer


def push(made: Core, tailer: Any, number: int, *items: tuple[Kind, float | None], at: float = 0.0) -> None:
    extras = {
        place: Extra(units=(("tokens", amount),)) for place, (_, amount) in enumerate(items) if amount is not None
    }
    made.push(tailer, flight(number, *[kind for kind, _ in items], extras=extras), 0, 1e9, at)
    made.turn(at, WALL)


def turned(made: Core, worker: WorkerSession, now: float) -> list[int]:
    made.lease_requested(worker, worker.granted.number + 1, now)
    made.limits.now = now
    made.turn(now, WALL)
    return list(sent(made, worker, now))


TOKENS = Quota(downstream="openai", units=(UnitRate("tokens", 100.0, 1000.0),))


def test_items_start_by_what_they_are_estimated_to_use() -> None:
    # Given a thousand tokens at once and a hundred a second
    made, worker, tailer = measured(TOKENS)
    # When items of four hundred each come
    push(made, tailer, 1, *[(Kind("a"), 400.0)] * 5)
    # Then two start, and the next one when there is enough of them
    assert len(sent(made, worker, 0.0)) == 2
    [limit] = [each for each in made.limits.charges.all() if isinstance(each, UnitLimit)]
    assert limit.next_at() == pytest.approx(2.0)
    assert turned(made, worker, 1.9) == []
    assert len(turned(made, worker, 2.0)) == 1


def test_what_a_run_used_puts_the_limit_right_both_ways() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 500.0)] * 6)
    first, second = sent(made, worker, 0.0)
    # When one used less, Then what it left is there for the next
    made.report(worker, Outcomes([], {first: Ended(Outcome.SUCCESS, used=(("openai", "tokens", 0.0),))}), 0.0, WALL)
    [third] = turned(made, worker, 0.0)
    # When another one used more, Then there is a debt, which time pays
    made.report(worker, Outcomes([], {second: Ended(Outcome.SUCCESS, used=(("openai", "tokens", 800.0),))}), 0.0, WALL)
    assert turned(made, worker, 7.9) == []
    assert len(turned(made, worker, 8.0)) == 1
    assert third in worker.open


def test_what_is_given_back_never_makes_more_than_what_the_bucket_could_have_kept() -> None:
    # Given a hundred long runs that were estimated far too high, begun one after the other
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 1000.0)] * 300)
    running = list(sent(made, worker, 0.0))
    now = 0.0
    while len(running) < 100:
        now += 10.0
        running += turned(made, worker, now)
    # When all of them turn out to have used nothing, one after the other, in the same moment
    started = 0
    for each in running:
        ended = Ended(Outcome.SUCCESS, used=(("openai", "tokens", 0.0),))
        made.report(worker, Outcomes([], {each: ended}), now, WALL)
        started += len(turned(made, worker, now))
    # Then a bucket that never had to pay for them would be full, and lets one start, not a hundred
    assert started == 1


def test_whoever_said_nothing_or_was_lost_keeps_its_estimate_and_whoever_never_ran_does_not() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 500.0)] * 8)
    silent, held = sent(made, worker, 0.0)
    made.report(worker, Outcomes([silent], {}), 0.0, WALL)
    assert turned(made, worker, 0.0) == []
    made.report(worker, Outcomes([], {held: Ended(Outcome.HELD, "handed back")}), 0.0, WALL)
    [lost] = turned(made, worker, 0.0)
    made.forget_worker(worker, 0.0)
    other = worker_of(made, limit=10, session="other")
    made.worker_connected(other, [FunctionSpec("a", downstreams=("openai",))], other.pools.values(), 0.0)
    assert turned(made, other, 0.0) == []
    assert lost not in other.open


def test_an_estimate_is_what_the_item_says_else_the_average_else_what_is_declared() -> None:
    quota = Quota(downstream="openai", units=(UnitRate("tokens", 100.0, 1000.0, estimate=250.0),))
    made, worker, tailer = measured(quota)
    # Given nothing is known, Then what the quota says counts
    push(made, tailer, 1, *[(Kind("a"), None)] * 5)
    first = list(sent(made, worker, 0.0))
    assert len(first) == 4
    # When runs said what they use, Then that is what the others are taken to use, if they say nothing
    ends = {each: Ended(Outcome.SUCCESS, used=(("openai", "tokens", 100.0),)) for each in first}
    made.report(worker, Outcomes([], ends), 0.0, WALL)
    assert len(turned(made, worker, 100.0)) == 1
    made.report(worker, Outcomes(list(worker.open), {}), 100.0, WALL)
    push(made, tailer, 2, *[(Kind("a"), None)] * 20, at=200.0)
    assert len(sent(made, worker, 200.0)) == 10
    push(made, tailer, 3, (Kind("b"), None), (Kind("a"), 1.0), at=200.0)
    assert made.limits.charges.measuring


def test_a_large_item_is_not_overtaken_for_ever_by_small_ones() -> None:
    # Given a steady stream of small items beside one that needs a whole burst
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a", 2, "", "small"), 100.0)] * 10)
    sent(made, worker, 0.0)
    push(made, tailer, 2, (Kind("b", 2, "", "large"), 1000.0))
    started, now, number = False, 0.0, 2
    while not started and now < 60:
        now, number = now + 0.5, number + 1
        push(made, tailer, number, (Kind("a", 2, "", "small"), 50.0), at=now)
        refs = list(sent(made, worker, now)) + turned(made, worker, now)
        started = any(worker.open[each][KIND].function == "b" for each in refs)
    # Then it starts as soon as its turn has filled the bucket once
    assert started and now <= 30


def test_an_item_beyond_the_burst_starts_from_a_full_bucket_and_leaves_a_debt() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, (Kind("a"), 3000.0), (Kind("a"), 100.0))
    assert len(sent(made, worker, 0.0)) == 1
    assert turned(made, worker, 20.9) == []
    assert len(turned(made, worker, 21.0)) == 1


def test_one_wrong_number_shuts_nobody_out_for_longer_than_an_hour() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 10.0)] * 200)
    first, *_ = sent(made, worker, 0.0)
    wrong = Ended(Outcome.SUCCESS, used=(("openai", "tokens", 1e300), ("openai", "tokens", math.nan)))
    made.report(worker, Outcomes([], {first: wrong}), 0.0, WALL)
    assert turned(made, worker, 3600.0) == []
    assert turned(made, worker, 3601.0)


@pytest.mark.parametrize("amount", [math.nan, -1.0, math.inf, -math.inf])
def test_amounts_that_cannot_be_are_passed_over_wherever_they_come_from(amount: float) -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), amount)] * 3)
    refs = list(sent(made, worker, 0.0))
    assert len(refs) == 3
    ended = Ended(Outcome.SUCCESS, used=(("openai", "tokens", amount),))
    made.report(worker, Outcomes([], {refs[0]: ended}), 0.0, WALL)
    assert [ref >> 10 for ref in tailer.succeeded] == [1]
    [limit] = [each for each in made.limits.charges.all() if isinstance(each, UnitLimit)]
    assert limit.holds(0.0) == 997.0


def test_explain_says_how_much_of_which_unit_is_missing_and_until_when() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 800.0)] * 2)
    sent(made, worker, 0.0)
    found = explain(made, "1-1", 1.0, WALL)
    assert found.reason == "units"
    assert "downstream openai in tokens has 300 of 1,000 tokens at 100 per second" in found.detail
    assert "estimated at 800; there is enough in 5 s" in found.detail
    assert [hold.ends_at for hold in found.holds if hold.reason == "units"] == [WALL + 5.0]


def test_other_numbers_keep_what_has_gathered_and_what_is_out_is_put_right_in_them() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 900.0)] * 3)
    [running] = sent(made, worker, 0.0)
    lower = Quota(downstream="openai", units=(UnitRate("tokens", 10.0, 500.0),))
    made.apply([], [lower], [], 2, 0.0)
    ended = Ended(Outcome.SUCCESS, used=(("openai", "tokens", 900.0),))
    made.report(worker, Outcomes([], {running: ended}), 0.0, WALL)
    assert turned(made, worker, 39.9) == []
    assert len(turned(made, worker, 40.0)) == 1
    made.apply([], [], [], 3, 40.0)
    assert len(turned(made, worker, 40.0)) == 1
    assert not made.limits.measuring


def test_a_run_that_says_what_it_used_ends_as_a_plain_success_for_its_tailer() -> None:
    made, worker, tailer = worker_and_tailer()
    made.push(tailer, flight(1, Kind("a"), Kind("a")), 0, 28.0, 0.0)
    first, second = turned(made, worker, 0.0)
    ends = {
        first: Ended(Outcome.SUCCESS, used=(("openai", "tokens", 3.0),)),
        second: Ended(Outcome.FATAL, "no", used=(("", "rows", 2.0),)),
    }
    made.report(worker, Outcomes([], ends), 0.0, WALL)
    assert len(tailer.succeeded) == 1
    assert list(tailer.ended.values()) == [Ended(Outcome.FATAL, "no")]


def worker_and_tailer() -> tuple[Core, WorkerSession, Any]:
    made = core()
    return made, worker_of(made), tailer_of(made)


def test_what_was_taken_back_before_it_was_sent_used_nothing() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 400.0)] * 3)
    # Given two that were assigned and never sent, When their worker goes away
    made.worker_away(worker, 0.0)
    [limit] = [each for each in made.limits.charges.all() if isinstance(each, UnitLimit)]
    # Then they are not charged any more, and are charged once when another one has them
    assert limit.holds(0.0) == 1000.0
    made.limits.now = 0.0
    made.worker_connected(worker, [FunctionSpec("a", downstreams=("openai",))], worker.pools.values(), 0.0)
    assert len(turned(made, worker, 0.0)) == 2
    assert limit.holds(0.0) == 200.0


def test_each_tenant_has_its_own_and_invented_ones_evade_nothing() -> None:
    quota = Quota(downstream="openai", per="tenant", max_values=3, units=(UnitRate("tokens", 1.0, 100.0),))
    made, worker, tailer = measured(quota)
    push(made, tailer, 1, *[(Kind("a", 2, "", f"t{number}"), 100.0) for number in range(20)])
    # Then three of them have a bucket of their own, and all others one together
    assert len(sent(made, worker, 0.0)) == 4


def test_a_name_that_a_function_does_not_declare_moves_nothing_and_is_counted() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 100.0)] * 2)
    first, second = sent(made, worker, 0.0)
    ends = {
        first: Ended(Outcome.SUCCESS, used=(("opneai", "tokens", 900.0),)),
        second: Ended(Outcome.SUCCESS, used=(("", "tokens", 300.0),)),  # the only one that it declares
    }
    made.report(worker, Outcomes([], ends), 0.0, WALL)
    [limit] = [each for each in made.limits.charges.all() if isinstance(each, UnitLimit)]
    assert limit.holds(0.0) == 1000.0 - 100.0 - 300.0
    [unknown] = inspect(made, "s", 0.0).unknown_downstreams
    assert (unknown.reason, unknown.count) == ("a", 1)
    [state] = inspect(made, "s", 0.0).units
    assert (state.downstream, state.unit, state.left, state.burst, state.rate) == ("openai", "tokens", 600, 1000, 100)


def test_other_labels_of_flows_lose_no_charge() -> None:
    # Given runs that were charged
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a", 2, "", tenant), 400.0) for tenant in ("t", "u", "t", "u")])
    running = list(sent(made, worker, 0.0))
    # When quotas tell tenants apart from now on, and no more afterwards
    made.apply([], [TOKENS, Quota(tenant="t", concurrency=9)], [], 2, 0.0)
    made.apply([], [TOKENS], [], 3, 0.0)
    # Then what they used still puts the limit right, once
    ends = {each: Ended(Outcome.SUCCESS, used=(("openai", "tokens", 0.0),)) for each in running}
    made.report(worker, Outcomes([], ends), 0.0, WALL)
    assert len(turned(made, worker, 0.0)) == 2
    [limit] = [each for each in made.limits.charges.all() if isinstance(each, UnitLimit)]
    assert limit.holds(0.0) == 200.0


def test_a_run_that_a_limit_was_taken_away_from_wakes_nobody_there() -> None:
    # Given two runs that were charged, and a flow that waits for more of their unit
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 500.0)] * 3)
    first, second = sent(made, worker, 0.0)
    # When the limit is taken away, Then the flow goes on without it
    made.apply([], [], [], 2, 0.0)
    assert len(turned(made, worker, 0.0)) == 1
    # And a run that says afterwards that it used less finds nobody who waits at the limit that it was charged by
    push(made, tailer, 2, *[(Kind("a"), 500.0)] * 2)
    used = {first: Ended(Outcome.SUCCESS, used=(("openai", "tokens", 0.0),))}
    made.report(worker, Outcomes([], used), 0.0, WALL)
    assert len(turned(made, worker, 0.0)) == 2
    assert second in worker.open


def test_a_limit_in_items_and_one_in_units_hold_beside_each_other() -> None:
    quota = Quota(downstream="openai", concurrency=3, rate=5.0, burst=10.0, units=(UnitRate("tokens", 100.0, 1000.0),))
    made, worker, tailer = measured(quota)
    push(made, tailer, 1, *[(Kind("a"), 100.0)] * 40)
    started, now, ends = 0, 0.0, list(sent(made, worker, 0.0))
    assert len(ends) == 3
    while now < 20.0:
        started += len(ends)
        made.report(worker, Outcomes(ends, {}), now, WALL)
        now += 0.25
        ends = turned(made, worker, now)
    # Then the scarcest one decides: a thousand tokens, and a hundred a second
    assert 28 <= started <= 30


def test_a_flow_is_closed_to_tailers_by_what_its_units_let_start_soon() -> None:
    made, worker, _ = measured(Quota(downstream="openai", units=(UnitRate("tokens", 10.0, 10.0),)))
    session = made.attach_tailer("s", "s", 0.0)
    made.tailer_connected(session)
    number = session.requests.send(0.0)
    made.push(session, flight(1, *[Kind("a")] * 200), number, 30.0, 0.0)
    for now in (0.0, 1.0, 2.0):
        turned(made, worker, now)
        made.tick(now, WALL)
    [closed] = made.closings.closed.values()
    assert closed.function == "a" and "openai in tokens" in closed.reason
    assert {end.reason for end in session.ended.values()} == {"units"}


@pytest.mark.parametrize(("burst", "seconds"), [(100.0, 60.0), (2000.0, 300.0)])
def test_a_flow_that_needs_two_units_is_not_starved_by_those_that_need_one(burst: float, seconds: float) -> None:
    # Given items of tokens alone, of rows alone, and of as much of both as there is at once
    both = Quota(downstream="openai", units=(UnitRate("tokens", 100.0, burst), UnitRate("rows", 100.0, burst)))
    made, worker, tailer = measured(both)
    made.apply([], [both, Quota(per="tenant", weight=1.0)], [], 2, 0.0)
    wants = [("t", "a", (("tokens", 60.0), ("rows", 0.0))), ("u", "a", (("tokens", 0.0), ("rows", 60.0)))]
    wants.append(("v", "b", (("tokens", burst), ("rows", burst))))
    for number, (tenant, name, units) in enumerate(wants, 1):
        extras = {at: Extra(units=units) for at in range(900)}
        made.push(tailer, flight(number, *[Kind(name, 2, "", tenant)] * 900, extras=extras), 0, 1e9, 0.0)
    started, now = 0, 0.0
    while now < seconds:
        now += 0.05
        refs = turned(made, worker, now)
        started += sum(1 for each in refs if worker.open[each][KIND].function == "b")
        made.report(worker, Outcomes(refs, {}), now, WALL)
    # Then it starts again and again
    assert started >= 6


def test_a_lower_rank_never_goes_before_a_higher_one_at_a_units_rate() -> None:
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a", 3), 500.0)] * 10)
    sent(made, worker, 0.0)
    push(made, tailer, 2, *[(Kind("a", 0), 500.0)] * 4)
    ranks, now = list[int](), 0.0
    for _ in range(4):
        now += 5.0
        ranks += [worker.open[each][KIND].priority for each in turned(made, worker, now)]
    assert ranks == [0, 0, 0, 0]
