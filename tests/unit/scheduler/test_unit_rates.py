"""Rates in units of one's own (FL20), in the whole core: against a slow and obvious account of what was used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from unit.scheduler.test_scheduler_core import WALL, core, flight, sent, tailer_of, worker_of

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.unit_rate import UnitRate
from tailrace.model.workload import Ended, Extra, Kind, Outcomes
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.estimate import Charged, needs
from tailrace.scheduler.rules.flow import EXTRA, KIND
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.rules.unit_limit import LONGEST_DEBT, MOST_HEIGHTS, UnitLimit
from tailrace.scheduler.sessions import WorkerSession
from tailrace.scheduler.view import explain, inspect

CALLS = {"a": ("d",), "b": ("d", "e"), "c": ()}
KINDS = [Kind(name, rank, "", tenant) for name in CALLS for rank in (0, 2) for tenant in ("", "t")]
QUOTAS = [
    Quota(downstream="d", units=(UnitRate("tokens", 10.0, 20.0),)),
    Quota(downstream="e", rate=5.0, units=(UnitRate("tokens", 4.0, 4.0, estimate=3.0), UnitRate("rows", 50.0))),
    Quota("b", 3, units=(UnitRate("tokens", 30.0, 10.0),)),
    Quota("b", per="tenant", units=(UnitRate("rows", 20.0, 30.0),)),
    Quota(tenant="t", units=(UnitRate("tokens", 25.0, 50.0),)),
]
amounts = st.sampled_from([0.0, 0.3, 1.0, 2.5, 7.0, 40.0])
said_units = st.dictionaries(st.sampled_from(["tokens", "rows", "other"]), amounts, max_size=2)


@dataclass
class Start:
    """One start at one unit limit: what it was estimated at, and what is known since."""

    at: float
    estimate: float
    used: float | None = None

    @property
    def known(self) -> float:
        return self.estimate if self.used is None else self.used


def counts(quota: Quota, kind: Kind) -> str | None:
    """The obvious account: which value of a quota an item of a kind pays; None: it does not."""
    if quota.function and quota.function != kind.function:
        return None
    if quota.downstream and quota.downstream not in CALLS[kind.function]:
        return None
    if quota.tenant and quota.tenant != kind.tenant:
        return None
    return kind.tenant if quota.per else ""


class Measured(RuleBasedStateMachine):
    """One tailer and workers that come and go; runs say what they used, or nothing, or are lost or handed back."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.core: Core = core(lane_items=500)
        self.worker: WorkerSession
        self.out: dict[int, dict[tuple[int, str, str], Start]] = {}
        self.starts: dict[tuple[int, str, str], list[Start]] = {}
        self.quotas = dict(enumerate(QUOTAS))
        self.number = self.workers = 0

    @initialize()
    def begin(self) -> None:
        self.attach()
        self.core.apply([], QUOTAS, [], 1, 0.0)
        self.tailer = self.core.attach_tailer("t", "t", 0.0, patient=True)
        self.core.tailer_connected(self.tailer)

    def attach(self) -> None:
        self.workers += 1
        self.worker = self.core.attach_worker(f"w{self.workers}", f"w{self.workers}", self.now)
        specs = [FunctionSpec(name, downstreams=called) for name, called in CALLS.items()]
        self.core.worker_connected(self.worker, specs, [PoolLimits("default", tuple(CALLS), 12, 12)], self.now)
        self.out = {}

    def step(self) -> None:
        self.core.limits.now = self.now
        self.core.turn(self.now, WALL)
        for each in sent(self.core, self.worker, self.now):
            self.started(each, self.worker.open[each])
        self.tailer.succeeded, self.tailer.ended = [], {}

    def started(self, ref: int, item: Any) -> None:
        """Notes it at each limit that it obviously pays, and that none of them was passed by it."""
        extra, kind = item[EXTRA], item[KIND]
        paid = list(extra.charged) if isinstance(extra, Charged) else []
        self.out[ref] = {}
        for number, quota in self.quotas.items():
            if (value := counts(quota, kind)) is None:
                continue
            for rate in quota.units:
                limit, estimate, _ = paid.pop(0 if len(paid) == 1 else self.index(paid, quota, rate))
                declared = dict(extra.units).get(rate.unit)
                assert declared is None or estimate == declared
                mine = self.out[ref][number, value, rate.unit] = Start(self.now, estimate)
                kept = self.starts.setdefault((number, value, rate.unit), [])
                kept.append(mine)
                assert isinstance(limit, UnitLimit)
        assert not paid
        for (number, _, unit), start in self.out[ref].items():
            rate = next(each for each in QUOTAS[number].units if each.unit == unit)
            burst = max(1.0, rate.burst or rate.rate)
            used = 0.0
            for each in reversed(self.starts[number, _, unit]):
                used += each.known
                most = rate.rate * (self.now - each.at) + burst + max(0.0, start.estimate - burst)
                assert used <= most + 1e-3, f"{QUOTAS[number].what} in {unit}: {used} > {most}"

    @staticmethod
    def index(paid: list[Any], quota: Quota, rate: UnitRate) -> int:
        named = quota.what.replace("each tenant", "")
        fits = [at for at, each in enumerate(paid) if each[0].unit == rate.unit and each[0].name.startswith(named)]
        return fits[0]

    @rule(kinds=st.lists(st.tuples(st.sampled_from(KINDS), st.none() | said_units), min_size=1, max_size=12))
    def push(self, kinds: list[tuple[Kind, dict[str, float] | None]]) -> None:
        self.number += 1
        extras = {at: Extra(units=tuple(said.items())) for at, (_, said) in enumerate(kinds) if said}
        made = flight(self.number, *[kind for kind, _ in kinds], extras=extras)
        self.core.push(self.tailer, made, 0, 1e9, self.now)
        self.step()

    @rule(data=st.data(), how=st.sampled_from(["success", "fails", "silent", "held", "late"]))
    def report(self, data: st.DataObject, how: str) -> None:
        if not self.out:
            return
        for ref in data.draw(st.lists(st.sampled_from(sorted(self.out)), unique=True, min_size=1, max_size=6)):
            called = CALLS[self.worker.open[ref][KIND].function]
            said = st.tuples(st.sampled_from(["", "x", *called]), st.sampled_from(["tokens", "rows"]), amounts)
            used = data.draw(st.lists(said, max_size=5))
            self.end(ref, how, tuple(used))
        if how in ("success", "fails"):  # averages moved: what sleeps by another one is looked at with the next tick
            self.core.limits.tick(self.now)
        self.step()

    def end(self, ref: int, how: str, used: tuple[tuple[str, str, float], ...]) -> None:
        starts = self.out.pop(ref)
        if ref in self.worker.open:
            called = CALLS[self.worker.open[ref][KIND].function]
            meant = [(called[0] if not named and len(called) == 1 else named, its, much) for named, its, much in used]
        else:
            meant = []
        for (number, _, unit), start in starts.items():
            of = QUOTAS[number].downstream
            mine = [amount for named, its, amount in meant if its == unit and (not of or named == of)]
            if how in ("held", "late"):
                start.used = 0.0
            elif how != "silent" and mine:
                start.used = sum(mine)
        ended = {
            "success": Ended(Outcome.SUCCESS, used=used),
            "fails": Ended(Outcome.FATAL, "no", used=used),
            "silent": Ended(Outcome.FATAL, "no"),
            "held": Ended(Outcome.HELD, "handed back"),
            "late": Ended(Outcome.EXPIRED, "too late"),
        }[how]
        outcomes = Outcomes([], {ref: ended})
        self.core.report(self.worker, outcomes, self.now, WALL)
        self.core.report(self.worker, outcomes, self.now, WALL)  # said twice: it counts once

    @rule(number=st.integers(0, len(QUOTAS) - 1), told=st.lists(amounts, max_size=4))
    def set(self, number: int, told: list[float]) -> None:
        """An operator takes a quota away, or gives it again; it begins with a full bucket then. Runs that were charged
        by it say afterwards what they used."""
        if self.quotas.pop(number, None) is None:
            self.quotas[number] = QUOTAS[number]
        self.starts = {key: starts for key, starts in self.starts.items() if key[0] != number}
        self.core.apply([], self.quotas.values(), [], 1, self.now)
        for ref, amount in zip(list(self.out), told, strict=False):
            self.end(ref, "success", (("d", "tokens", amount), ("e", "rows", amount)))
        self.core.limits.tick(self.now)
        self.step()

    @rule()
    def lose(self) -> None:
        """Whether what ran there used anything is not known: it keeps its estimate."""
        self.core.forget_worker(self.worker, self.now)
        self.attach()
        self.step()

    @rule(seconds=st.sampled_from([0.05, 0.4, 1.5, 6.0]))
    def time(self, seconds: float) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.core.lease_requested(self.worker, self.worker.granted.number + 1, self.now)
        self.core.grants(self.worker, self.now)
        self.core.tick(self.now, WALL)
        self.step()

    @invariant()
    def the_next_in_turn_lacks_something(self) -> None:
        for limit in self.core.limits.charges.all():
            if isinstance(limit, UnitLimit) and any(each.size and not each.woken for each in limit.sleepers.values()):
                asleep = [
                    flow
                    for each in self.core.roster.functions.values()
                    for flow in each.all_flows
                    if flow.asleep is limit
                ]
                held = limit.holds(self.now)
                assert any(not limit.enough(held, needs(flow, limit)) for flow in asleep), limit.full(self.now)

    @invariant()
    def a_bucket_stays_within_its_bounds(self) -> None:
        for limit in self.core.limits.charges.all():
            if isinstance(limit, UnitLimit):
                held = limit.holds(self.now)
                assert -LONGEST_DEBT * limit.rate <= held <= limit.burst
                assert len(limit._heights) <= MOST_HEIGHTS

    def teardown(self) -> None:
        """Whatever waits starts in the end, in its limits."""
        if not hasattr(self, "tailer"):
            return
        for _ in range(4000):
            for ref in list(self.out):
                self.end(ref, "silent", ())
            if not any(flow.items for each in self.core.roster.functions.values() for flow in each.all_flows):
                return
            nexts = self.core.next_at
            self.pass_time(max(0.01, min(5.0, (nexts - self.now) if nexts is not None else 1.0)))
        raise AssertionError("something never started")


TestMeasured = Measured.TestCase
TestMeasured.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


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
