"""Histories of rates in units of one's own (FL20), against a slow and obvious account of the use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from unit.scheduler.test_scheduler_core import WALL, core, flight, sent
from unit.scheduler.test_unit_rates import CALLS

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
    """One start at one unit limit: its estimate, and its use as known since."""

    at: float
    estimate: float
    used: float | None = None

    @property
    def known(self) -> float:
        return self.estimate if self.used is None else self.used


def counts(quota: Quota, kind: Kind) -> str | None:
    """An obvious account: which value of a quota an item of a kind pays; None: it does not."""
    if quota.function and quota.function != kind.function:
        return None
    if quota.downstream and quota.downstream not in CALLS[kind.function]:
        return None
    if quota.tenant and quota.tenant != kind.tenant:
        return None
    return kind.tenant if quota.per else ""


class Measured(RuleBasedStateMachine):
    """One tailer and workers that come and go; runs say their use, or nothing, or are lost or handed back."""

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
        """Notes a start at each limit that it obviously pays, and checks that it passed none of them."""
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
        """Takes a quota away, or gives it again, as an operator does; it begins with a full bucket then. Runs that were
        charged by it say afterwards what they used."""
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
        """Loses a worker. Nobody knows whether its runs used anything: they keep their estimates."""
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
        """Asserts that everything that waits starts in the end, in its limits."""
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
