"""Limits in force: which charges each flow has, and how much of each limit is taken.

Invariant (FL3): a limit counts as running all open items whose flows pay it, but for those that wait for other work.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from ..model.limits import Quota
from ..model.unit_rate import MOST_SAID
from ..model.workload import Kind
from .roster import Able, Roster, RosterFunction
from .rules.adaptive import AdaptiveLimit
from .rules.charges import Charges
from .rules.estimate import Charged, Used, learn, used_of
from .rules.flow import EXTRA, FLOW, KIND, Flow, Item
from .rules.reserve import Reserve
from .rules.retry_budget import RetryBudget
from .rules.unit_limit import UnitLimit
from .sessions import WorkerSession
from .sleep import Sleep


class Limits:
    """The charges of all flows. `any`: a limit is set; without one nothing is counted. `metering`: costs are counted,
    which they are where quotas are set and something had to wait of late; else each item costs the same. `sharing`:
    there are reserves, or opportunistic functions. `measuring`: something is limited in units of one's own."""

    def __init__(self, roster: Roster, workers: Mapping[str, WorkerSession], sleep: Sleep) -> None:
        self.any = False
        self.charges = Charges()
        self.sleep = sleep
        self.metering = False
        self.sharing = False
        self.measuring = False
        self.now = 0.0
        self.rejoining_until = -math.inf  # nothing starts until then, where a concurrency is limited (FL22)
        self.unknown: Counter[str] = Counter()  # what runs used of downstreams that their function does not declare
        self._measured = False  # flows may have unit limits, or may have had them before
        self._apart = self.charges.apart
        self._roster = roster
        self._workers = workers

    def kept(self, able: Able) -> float:
        """Slots of these pools that stay empty for reserves that are not lent: those of a function also before its
        first item came."""
        keeping = [(key[0], reserve) for key, reserve in self.charges.reserves.items() if not reserve.lend]
        return sum([reserve.unused() for name, reserve in keeping if self._runs_in(able, name, reserve)])

    def _runs_in(self, able: Able, name: str, reserve: Reserve) -> bool:
        """Whether the holder of a reserve runs in these pools: its function, or any known flow that may use the
        reserve."""
        function = self._roster.functions.get(name)
        if function is not None and able is function.able:
            return True
        return any(flow.function.able is able for flow in reserve.flows)

    def flow(self, function: RosterFunction, kind: Kind, now: float, *, again: bool = False) -> Flow:
        """The flow of a kind, or of its retries; it is made when there is none."""
        kind = self.charges.kin(kind)
        key = (*kind, "again") if again else kind
        flow = function.flows.get(key)
        if flow is None:
            flow = function.flows[key] = Flow(function, kind)
            if again:
                flow.again = True
            if self.charges.anything:
                self._resolve(flow, now)
        return flow

    def unmade(self, function: RosterFunction, kind: Kind, now: float) -> Flow:
        """The flow that items of a kind would wait in, for a caller that only asks."""
        flow = Flow(function, kind, self.charges.resolve(kind, now))
        flow.measured, flow.averages = _measured(flow), function.averages
        return flow

    def set(self, quotas: Collection[Quota], version: int, now: float) -> None:
        """Replaces all quotas; a subject without one has no limits."""
        whole = {quota.function: quota for quota in quotas if not any(quota.key[1:])}
        for name in whole:
            self._roster.function(name, now)
        for name, function in self._roster.functions.items():
            function.limit(whole.get(name))
        shared = self.sharing
        self.sharing = any(quota.reserve or quota.opportunistic for quota in quotas)
        self._roster.choosing = bool(quotas)
        if self.charges.set(quotas, version, now):
            self.metering = self.metering and self.charges.weighed
            self._anew(now)
            if shared or self.sharing:
                self._wait_anew()

    def declare(self, downstreams: Mapping[str, tuple[str, ...]], now: float) -> bool:
        """Takes the downstreams that functions declare. Returns whether that changed anything."""
        changed = self.charges.declare(downstreams)
        if changed and self.charges.anything:
            self._anew(now)
        return changed

    def ended(self, items: Collection[Item], *, sent: bool = True) -> None:
        """Frees the limits of items that are out no longer, or wait for other work. Items that were not `sent` never
        started."""
        if self.any:
            roomy = self.sleep.roomy
            for limit, count in Counter(chain.from_iterable([item[FLOW].charges for item in items])).items():
                limit.running -= count
                if sent:
                    limit.ended += count
                assert limit.running >= 0
                if limit.sleepers:
                    roomy[limit] = None
        if self.metering:
            now = self.now
            for flow, count in Counter([item[FLOW] for item in items]).items():
                for metered in (flow, flow.function):
                    metered.running -= count
                    metered.area += count * now
                    metered.ended += count

    def silent(self, started: Iterable[tuple[Item, float]]) -> None:
        """Notes that items which started at these times are over without a word on their downstreams: a probe among
        them is followed by another (FL14)."""
        for item, at in started if self.any else ():
            for limit in item[FLOW].charges:
                if isinstance(limit, AdaptiveLimit):
                    limit.unknown(at, self.now)

    def unused(self, items: Iterable[Item]) -> None:
        """Notes items that were never started where they were to run: they used nothing."""
        for item in items:
            if isinstance(extra := item[EXTRA], Charged):
                for limit, amount, since in extra.charged:
                    self._put_right(limit, amount, 0.0, since)
                extra.charged = ()

    def meant(self, function: str, used: Used) -> Used:
        """The use that a run reported, at the downstreams that are meant (FL13): without a name, the only one that its
        function declares; a name that it does not declare is counted, and is of none."""
        declared = self.charges.downstreams(function)
        only = declared[0] if len(declared) == 1 else ""
        self.unknown[function] += sum(bool(of) and of not in declared for of, _, _ in used[:MOST_SAID])
        return tuple(
            [(of if of in declared else "" if of else only, unit, amount) for of, unit, amount in used[:MOST_SAID]]
        )

    def used(self, item: Item, used: Used) -> None:
        """Notes the use that an ended run reported; for all else it keeps its estimate."""
        if isinstance(extra := item[EXTRA], Charged):
            seen = set()
            for limit, amount, since in extra.charged:
                if (really := used_of(limit, used)) is not None:
                    self._put_right(limit, amount, really, since)
                    if (key := (limit.downstream, limit.unit)) not in seen:
                        seen.add(key)
                        learn(item[FLOW].function.averages, limit, really)
            extra.charged = ()

    def _put_right(self, limit: UnitLimit, amount: float, really: float, since: int) -> None:
        limit.put_right(amount, really, since, self.now)
        if limit.sleepers:  # there is more room, or others need another average from now on
            self.sleep.roomy[limit] = None

    def go_on(self, items: Iterable[Item]) -> None:
        """Counts again items that waited for other work and run on, beyond every limit if need be."""
        for flow, count in Counter([item[FLOW] for item in items]).items():
            for limit in flow.charges:
                limit.again(count)
            if self.metering:
                flow.start(count, self.now)
                flow.function.start(count, self.now)

    def meter(self, now: float) -> None:
        """Counts costs from now on; items that are out already are found by looking."""
        self.metering = True
        self.now = now
        running = self._open()
        functions: Counter[RosterFunction] = Counter()
        for flow, count in running.items():
            functions[flow.function] += count
        for part in self._parts():
            part.recount(functions[part], now)
            for flow in part.flows.values():
                if flow.running or flow.presumed or flow.ended > flow.counted:
                    flow.recount(0, now)
        for flow, count in running.items():
            flow.recount(count, now)

    def tick(self, now: float) -> None:
        """Corrects functions that run something and were charged too little, or too much; and looks at every limit that
        a flow sleeps on."""
        self.now = now
        self.sleep.tick()
        if not self.metering:
            return
        for flow in {flow for reserve in self.charges.reserves.values() for flow in reserve.flows}:
            self.settle(flow, now)
        for part in self._parts():
            if part.able is not None and (part.running or part.ended > part.counted):
                part.able.turns.correct(part, part.settle(now))

    @staticmethod
    def settle(flow: Flow, now: float) -> None:
        """Corrects the turn and the reserves of a flow that was charged too little, or too much (FL8)."""
        excess = flow.settle(now)
        flow.v = max(0.0, flow.v + excess / flow.weight)
        for reserve in flow.reserves_of:
            reserve.take(excess)

    @property
    def remembered(self) -> int:
        """Number of flows that are remembered, or of tenants, if those are more."""
        return max(sum([len(part.flows) for part in self._parts()]), self.charges.remembered)

    def sweep(self, now: float, *, crowded: bool = False) -> int:
        """Forgets flows of which nothing waits, and limits of tenants that nobody uses; returns how many flows are
        left. `crowded`: only flows that pay unused limits of a quota with as many tenants as it may have; all others
        keep their learnt averages."""
        idle = self.charges.idle(now) if crowded else None
        for part in self._parts():
            part.flows = {
                kind: flow
                for kind, flow in part.flows.items()
                if flow.items or flow.queued or flow.closed or (idle is not None and idle.isdisjoint(flow.charges))
            }
        flows = {flow for part in self._parts() for flow in part.flows.values()}
        for reserve in self.charges.reserves.values():
            reserve.flows = {flow: None for flow in reserve.flows if flow in flows or flow.running}
        # Limits do not count what waits for other work, and it goes on under them.
        parents = [each.open[ref][FLOW] for each in self._workers.values() for ref in each.parents]
        self.charges.forget({limit for flow in (*flows, *parents) for limit in flow.charges}, now)
        if self.charges.unshare():
            self._anew(now)
        return len(flows)

    def adapt(
        self,
        adaptive: Mapping[tuple[str, str], AdaptiveLimit],
        full: Collection[str],
        budgets: Mapping[str, RetryBudget],
        now: float,
    ) -> None:
        """Replaces the adaptive limits of downstreams and the budgets of retries."""
        self.charges.adapt(adaptive, full, budgets)
        self._anew(now)

    def _anew(self, now: float) -> None:
        """Resolves the charges of every flow, and counts how much they have taken."""
        self._measured = self.measuring  # what flows had then goes, too
        self.any, self.measuring = self.charges.any, self.charges.measuring
        self._measured |= self.measuring
        self.sleep.clear()
        self._nobody_sleeps()
        limits = list(self.charges.all())
        before = [limit.running for limit in limits]
        for limit in limits:
            limit.running = 0
            limit.reserver = None
            limit.sleepers.clear()
        if self._apart != self.charges.apart:
            self._apart = self.charges.apart
            self._regroup(now)
        for function in self._roster.functions.values():
            for flow in function.all_flows:
                self._resolve(flow, now)
                flow.woken_by = None
                if flow.asleep is not None:
                    flow.asleep = None
                    if flow.function.able is not None:
                        flow.function.able.fresh.append(flow)
        for flow, count in self._running().items():
            self._resolve(flow, now)
            for limit in flow.charges:
                limit.found(count)
        for limit, running in zip(limits, before, strict=True):
            limit.recounted(running)

    def _nobody_sleeps(self) -> None:
        """Takes everyone out of the sleepers of limits, also of those that are in force no more: runs that were charged
        by such a one put it right when they end, and would wake flows that pay it no longer."""
        for function in self._roster.functions.values():
            for flow in function.all_flows:
                if flow.asleep is not None:
                    flow.asleep.sleepers.clear()
                if flow.woken_by is not None:
                    flow.woken_by.of.sleepers.clear()

    def _wait_anew(self) -> None:
        """Lets all that waits take its place anew, since flows with a reserve stand elsewhere than those without
        (FL18)."""
        for part in self._parts():
            if part.able is not None:
                part.able.drop(part)
                for flow in part.flows.values():
                    flow.queued = bool(flow.items)
                    if flow.items:
                        part.able.fresh.append(flow)

    def _regroup(self, now: float) -> None:
        """Moves waiting and running items into other flows, since other labels tell flows apart from now on."""
        self.metering = False
        for reserve in self.charges.reserves.values():
            reserve.flows.clear()  # nothing is counted on the former ones any more; the new ones are resolved next
        for part in self._parts():
            former, part.flows = part.flows, {}
            if part.able is not None:
                part.able.drop(part)
            for old in former.values():
                items, old.items = old.items, []
                for item in items:
                    flow = self.flow(part, item[KIND], now, again=old.again)
                    flow.items.append((*item[:FLOW], flow))
                    flow.dated = flow.dated or old.dated
            for flow in part.flows.values():
                if part.able is not None:
                    flow.queued = True
                    part.able.fresh.append(flow)
        for worker in self._workers.values():
            for ref, item in worker.open.items():
                old = item[FLOW]
                worker.open[ref] = (*item[:FLOW], self.flow(old.function, item[KIND], now, again=old.again))

    def carry(self, worker: WorkerSession, carried: Counter[Kind], now: float) -> None:
        """Takes the items that a worker runs for sessions that this scheduler does not know: limits count them until it
        says that they are over (FL22)."""
        before, worker.carried = worker.carried, carried
        for kind in before.keys() | carried.keys():
            more = carried[kind] - before[kind]
            flow = self.flow(self._roster.function(kind.function, now), kind, now)
            for limit in flow.charges:
                limit.again(more)
                if more < 0 and limit.sleepers:
                    self.sleep.roomy[limit] = None

    def _running(self) -> Counter[Flow]:
        """Number of items that run, by flow, but for those that wait for other work."""
        found = self._open()
        for worker in self._workers.values():
            for kind, count in worker.carried.items():
                found[self.flow(self._roster.function(kind.function, self.now), kind, self.now)] += count
        return found

    def _open(self) -> Counter[Flow]:
        return Counter(
            [
                item[FLOW]
                for each in self._workers.values()
                for ref, item in each.open.items()
                if ref not in each.parents
            ]
        )

    def _resolve(self, flow: Flow, now: float) -> None:
        flow.charges, flow.weight, flow.own = self.charges.paid(flow.kind, now)
        if self._measured:
            flow.measured, flow.averages = _measured(flow), flow.function.averages
        if self.charges.reserves or flow.reserves_of:
            flow.reserves_of = self.charges.reserved(flow.kind)
            for reserve in flow.reserves_of:
                reserve.flows[flow] = None
        budget = self.charges.budget(flow.kind.function)
        if budget is not None:
            flow.charges += (budget if flow.again else budget.firsts,)

    def _parts(self) -> list[RosterFunction]:
        """All functions, and each as far as it runs apart."""
        return [part for function in self._roster.functions.values() for part in function.parts]


def _measured(flow: Flow) -> tuple[UnitLimit, ...]:
    """The unit limits among its charges."""
    return tuple([unit for limit in flow.charges for unit in limit.units])
