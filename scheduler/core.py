"""The scheduler's core: events in, decisions out. Pure: no clock, no socket; time is an argument
(`now` is monotonic, `wall` is wall clock; seconds).

Decisions are put into the outboxes of sessions (sessions.py), and `speaking` names the sessions that have something to
say. The way of an item: `push` (intake.py: gate, lane) → `turn` (dispatch.py: limits, fair pick, placement) → a
worker's `report` → its tailer (returns.py). An item is handed to a worker at most once, and ends exactly once (L9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..model.demand import Cell
from ..model.function_spec import FunctionSpec
from ..model.gate import Gate
from ..model.lease import LeaseSizes, is_enough_to_start
from ..model.limits import Quota
from ..model.workload import INDEX_BITS, Flight, Outcomes
from .adoption import Adoptions
from .closings import Closings
from .config import SchedulerConfig
from .credit import SessionCredits
from .crowding import Crowding
from .dispatch import Dispatch
from .intake import Intake
from .limits import Limits
from .misfits import Misfits
from .outages import Outages
from .protection import Protection
from .recall import Recall
from .returns import HELD, Returns
from .roster import Roster, spend_spare
from .rules.credit import steady, too_much
from .rules.explain import Reason
from .rules.flow import REF, SESSION
from .rules.gate import Gates
from .rules.heights import SeenHeights
from .rules.placement import PoolLimits, WorkerPool
from .sessions import Assignment, TailerSession, WorkerSession
from .shares import Shares
from .sleep import Sleep
from .usage import SchedulerUsage


class Core:
    """One scheduler's state. Invariant: each open item of a session is in one lane or in one worker's `open`."""

    def __init__(self, config: SchedulerConfig, sizes: LeaseSizes, *, ready: bool) -> None:
        self.config = config
        self.sizes = sizes
        self.ready = ready  # False: admits nothing until the first snapshot of gates and quotas
        self.draining = False
        self.version = 0
        self.tailers: dict[str, TailerSession] = {}
        self.workers: dict[str, WorkerSession] = {}
        self.roster = Roster(config.lane_items, config.low_share)
        self.sleep = Sleep(config.low_share)
        self.limits = Limits(self.roster, self.workers, self.sleep)
        self.usage = SchedulerUsage(self.workers, self.limits.charges.downstreams)
        self.returns = Returns(self.limits, self.usage)
        self.intake = Intake(self.roster, self.returns, self.limits, config.lane_items)
        self.speaking = self.returns.speaking
        self._recall = Recall(self.roster, self.workers, self.intake, self.returns)
        self.outages = Outages(config.clog.limits(), self.roster, self.workers, self.returns, self.intake, self._recall)
        self.adoptions = Adoptions(self.workers, self.tailers, self._recall, self.returns, sizes.source)
        self.shares = Shares(self.roster, self.limits, min(config.session_items, config.lane_items) // 2)
        self.closings = Closings(self.sleep, self.shares, self.returns, self.limits.charges)
        self.protection = Protection(self.limits, self.intake, self.sleep, config)
        self.crowding = Crowding(self.roster, self.shares, self.intake, self.returns, self.tailers)
        self._dispatch = Dispatch(self.sleep, self.limits, config.opportunistic_ceiling, self._recall.expire)
        self._grace = config.grace_heartbeats * sizes.heartbeat
        closers = (self.outages, self.closings, self.crowding)
        whole = (self.roster, self.workers, self.tailers, self.intake, *closers, self.returns)
        self._credit = SessionCredits(*whole, bound=config.session_items, grace=self._grace)
        self.misfits = Misfits(self.roster, self.workers)
        self.heights = SeenHeights()
        self._groups = 0

    # ---- sessions come and go

    def attach_tailer(
        self, session: str, name: str, now: float, *, patient: bool = False, through_outages: bool = False
    ) -> TailerSession:
        """Adds a session that pushes; `now` is when it was welcomed. A patient one waits for workers without end; one
        that goes through outages is not frozen with its functions."""
        self._groups += 1
        tailer = self.tailers[session] = TailerSession(session, name, self._groups, now, patient)
        tailer.through_outages = patient or through_outages
        self._recredit(now)
        self._credit.welcome(tailer)
        return tailer

    def tailer_connected(self, tailer: TailerSession) -> None:
        """Notes a new connection of a session: its leases are renewed at once (L3)."""
        tailer.connected = True
        tailer.request_due = True
        self.speaking.add(tailer)

    def tailer_away(self, tailer: TailerSession, now: float) -> None:
        """Notes that a tailer's connection is gone; it may come back until its leases are over."""
        tailer.connected = False
        tailer.away_since = now

    def forget_tailer(self, tailer: TailerSession, now: float) -> None:
        """Ends a session for good: waiting items are dropped, running ones cancelled, and late outcomes discarded."""
        if self.tailers.get(tailer.session) is tailer:
            del self.tailers[tailer.session]
            tailer.held.flights.clear()
            self._recall.revoke(lambda item: item[SESSION] is tailer)
            self._recredit(now)

    def attach_worker(self, session: str, name: str, now: float) -> WorkerSession:
        """Adds a session that runs items, whose hello came now."""
        worker = self.workers[session] = WorkerSession(session, name, now)
        return worker

    def worker_connected(
        self, worker: WorkerSession, specs: Sequence[FunctionSpec], pools: Iterable[PoolLimits], now: float
    ) -> None:
        """Notes a new connection of a worker, whose hello said which functions it can run."""
        known = worker.greeted
        if known:
            worker.granted.reconnected()
        worker.greeted = worker.connected = True
        worker.specs = {spec.name: spec for spec in specs}
        worker.pools = {pool.name: self._pool(worker, pool, now) for pool in pools}
        self._announce(specs, now)
        if not known:
            self.protection.attached(worker, now)
        self._reroster(now)
        self.speaking.add(worker)

    def worker_pools(self, worker: WorkerSession, pools: Iterable[PoolLimits], now: float) -> None:
        """Takes a worker's new limits; no functions means the same ones as before."""
        for pool in pools:
            worker.pools[pool.name] = self._pool(worker, pool, now)
        self._reroster(now)

    def worker_away(self, worker: WorkerSession, now: float) -> None:
        """Notes that a worker's connection is gone: unsent items wait again; sent ones wait for it, or its lease."""
        worker.connected = False
        worker.away_since = now
        self._recall.take_back(worker)
        self._reroster(now)

    def worker_draining(self, worker: WorkerSession, now: float) -> None:
        """Drains a worker: it takes nothing new, and finishes its items or hands them back."""
        if not worker.draining:
            worker.draining = True
            self._recall.take_back(worker)
            self._reroster(now)

    def break_worker(self, worker: WorkerSession, now: float) -> None:
        """Ends a worker's session whose items may run on: it is forgotten when these end. Its name is free."""
        if self.workers.get(worker.session) is worker:
            del self.workers[worker.session]
            self._groups += 1
            worker.session = f"{worker.session} (broken, {self._groups})"
            self.workers[worker.session] = worker
            self.worker_away(worker, now)

    def forget_worker(self, worker: WorkerSession, now: float) -> None:
        """Ends a session for good: whether its items ran is not known."""
        if self.workers.get(worker.session) is worker:
            worker.connected = False
            self._recall.take_back(worker)
            del self.workers[worker.session]
            self.limits.now = now
            self.limits.carry(worker, Counter(), now)
            self.returns.lose(worker)
            self._reroster(now)

    # ---- what tailers say

    def push(self, tailer: TailerSession, flight: Flight, lease_request: int, lease: float, now: float) -> None:
        """Takes a flight: its items go into lanes, or back at once with the reason. One seen before is ignored (L5)."""
        sent_at = tailer.requests.sent_at(lease_request)
        until = 0.0 if sent_at is None else sent_at + lease
        if not tailer.held.add(flight.number, until, len(flight), flight.fence, flight.owned):
            return
        tailer.wants_result = tailer.wants_result or flight.wants_result
        self.limits.now = now
        refusal = self._refusal(tailer, until - now)
        if flight.owned is not None and not self.adoptions.allows(tailer, flight.owned):
            refusal = Reason.NOT_OWNER
        if refusal is not None:
            self.returns.end(self.intake.items(tailer, flight), HELD[refusal])
            return
        if self.returns.recorders:
            for recorder in self.returns.recorders:
                recorder.arrived(flight.kinds, now)
        self.misfits.mark(flight, now)
        self.intake.admit(tailer, flight, now)
        if self.shares.parts and self.closings.pushed(self.intake.flows(flight.kinds), now, 0.0):
            self._credit.close_cells()
        if sum([other.held.items for other in self.tailers.values()]) > self.config.lane_items:
            self.intake.check_bounds(flight.kinds)

    def granted(self, tailer: TailerSession, request: int, lease: float, flights: Iterable[int]) -> None:
        """Takes a tailer's answer to a lease request. Items of flights that it does not list are nobody's any more."""
        sent_at = tailer.requests.sent_at(request)
        self._recall.abandon(tailer, tailer.held.renew(0.0 if sent_at is None else sent_at + lease, flights))

    def tailer_draining(self, tailer: TailerSession) -> None:
        """Drains a tailer, which waits for its items that are out: those that have not started go back."""
        tailer.draining = True
        self.returns.end(self._recall.remove(lambda item: item[SESSION] is tailer), HELD[Reason.DRAINING])

    def abandon(self, tailer: TailerSession, flight: int) -> None:
        """Gives up a flight that nobody waits for: waiting items are dropped, running ones are cancelled."""
        if tailer.held.forget(flight):
            self._recall.abandon(tailer, [flight])

    def cancel(self, tailer: TailerSession, refs: Iterable[int]) -> None:
        """Cancels items: waiting ones end at once; running ones are cancelled where they run."""
        self._recall.cancel(tailer, set(refs))

    def heartbeat(self) -> None:
        """Asks every session with a connection to renew its leases."""
        for tailer in self.tailers.values():
            if tailer.connected and not tailer.patient:
                tailer.request_due = True
                self.speaking.add(tailer)

    # ---- what workers say, and what is said to them

    def report(self, worker: WorkerSession, outcomes: Outcomes, now: float, wall: float) -> None:
        """Takes ends of items at a worker. The review comes first: a session hears that a function is clogged no later
        than of the failure that showed it."""
        self.limits.now = now
        self.misfits.review(worker, outcomes)
        if outcomes.ended or self.protection.active:
            self.protection.note(worker, outcomes, now)
        self.returns.report(worker, outcomes)
        if self.outages.review(now, wall):
            self._outages_changed()

    def waits(self, worker: WorkerSession, waits: Iterable[int], goes_on: Iterable[int], now: float) -> None:
        """Notes that items there wait for other work from now on, or go on. Credit rises with them, so that this other
        work can be pushed."""
        self.limits.now = now
        self.returns.go_on(worker, goes_on)
        self.returns.wait(worker, waits)
        grown = [pool for pool in worker.pools.values() if pool.parents > pool.spare]
        for pool in grown:
            pool.spare = steady(pool.parents)
        if grown:
            self._reroster(now)

    def lease_requested(self, worker: WorkerSession, number: int, now: float) -> None:
        """Notes that a worker wants its leases renewed; its next frame answers."""
        worker.granted.requested(number, now)
        worker.grants_due = True
        self.speaking.add(worker)
        self._see_freshness(worker, now)

    def grants(self, worker: WorkerSession, now: float) -> list[tuple[int, float]]:
        """(group, seconds) for each group of which it has items that their sessions still hold."""
        return worker.grants(self.sizes, now)

    def assignment(self, worker: WorkerSession, now: float) -> tuple[Assignment, float] | None:
        """The next assignment to send, and its lease in seconds; items with too short a lease (L2) go back instead."""
        while worker.assignments:
            made = worker.assignments.popleft()
            until = made.tailer.held.until({item[REF] >> INDEX_BITS for item in made.items})
            if is_enough_to_start(self.sizes, until - now) and (lease := worker.granted.grant(self.sizes, until)) > 0:
                return made, lease
            self.returns.end(self.returns.unsend(worker, made), HELD[Reason.LEASE_OVER])
        return None

    # ---- time and control

    def turn(self, now: float, wall: float) -> None:
        """Starts all that may start: once per loop turn, after events."""
        if self.ready and not self.draining:
            if self.outages.closed:
                if self.outages.review(now, wall):
                    self._outages_changed()
                self.outages.turn(now)
            changed = self.protection.active and self.protection.turn(now)
            if (looked := self.shares.due(now)) and self.shares.look(now):
                self._recredit(now)
            if (changed or looked) and self.closings.review(now, wall):
                self._credit.close_cells()
            self.speaking |= self._dispatch.turn(self.roster.ables, now, wall)

    @property
    def next_at(self) -> float | None:
        """Time at which `turn` can start something more without any event."""
        outages = self.outages.next_at() if self.outages.closed else None
        times = (outages, self._dispatch.next_at, self.protection.next_at)
        return min([at for at in times if at is not None], default=None)

    def tick(self, now: float, wall: float) -> None:
        """Lets time pass: leases end, sessions are given up, graces run out, items expire."""
        for worker in list(self.workers.values()):
            if now >= worker.lost_at(self.sizes):
                self.forget_worker(worker, now)
            else:
                self._see_freshness(worker, now)
        for tailer in list(self.tailers.values()):
            self._recall.lapse(tailer, now)
            if not tailer.connected and not tailer.patient:
                over = max(tailer.held.ends(), tailer.away_since + self.sizes.scheduler)
                if now >= over:
                    self.forget_tailer(tailer, now)
        self.limits.tick(now)
        self.intake.tick(now)
        self.usage.tick(now, wall)
        crowds = self.crowding.look(self._credit.total, now, wall)
        if ((self.sleep.blocked or self.closings.closed) and self.closings.review(now, wall)) or crowds:
            self._credit.close_cells()
        if self.protection.active:
            self.protection.tick(now)
        if spend_spare(pool for worker in self.workers.values() for pool in worker.pools.values()):
            self._reroster(now)
        self.outages.tick(now)
        self.adoptions.tick(now)
        if self._recall.look(self._grace, now, wall):
            self._recredit(now)

    def apply(
        self,
        gates: Iterable[Gate],
        quotas: Iterable[Quota],
        functions: Sequence[FunctionSpec],
        version: int,
        now: float,
    ) -> None:
        """Takes a snapshot of control: replaces all gates and quotas, adds functions, and makes the scheduler ready."""
        self.version = version
        self.ready = True
        self._announce(functions, now)
        self.limits.set(list(quotas), version, now)
        self.protection.numbered(now)
        self._shut(Gates(gates, self.roster.specs, self.limits.charges.downstreams))
        self._recredit(now)

    def drain(self, now: float) -> None:
        """Takes nothing more: credit ends, waiting items go back, running ones may finish."""
        self.draining = True
        for worker in self.workers.values():
            self._recall.take_back(worker)
        self.returns.end(self._recall.remove(lambda item: True), HELD[Reason.DRAINING])
        self._recredit(now)

    @property
    def credits(self) -> Mapping[Cell, int]:
        """Number of items of each cell that a session may have pushed."""
        return self._credit.cells

    @property
    def running(self) -> int:
        """Items that workers have."""
        return sum([len(worker.open) for worker in self.workers.values()])

    # ---- steps

    def _outages_changed(self) -> None:
        """Functions froze or thawed."""
        self.protection.came_back(self.outages.thawed)
        self.outages.thawed.clear()
        self._credit.close_cells()

    def _refusal(self, tailer: TailerSession, left: float) -> Reason | None:
        """The reason a whole push goes back at once; None: it does not. `left` seconds of its lease are left."""
        if self.draining:
            return Reason.DRAINING
        if not self.ready:
            return Reason.NOT_READY
        if not is_enough_to_start(self.sizes, left):
            return Reason.LEASE_OVER
        if too_much(tailer.held.items, self.config.calls if tailer.patient else self._credit.total):
            return Reason.NO_CREDIT
        return None

    def _pool(self, worker: WorkerSession, limits: PoolLimits, now: float) -> WorkerPool:
        pool = worker.pools.get(limits.name) or WorkerPool(worker, limits.name)
        pool.announced(limits)
        pool.shut = not worker.granted.fresh(self.sizes, now)
        return pool

    def _see_freshness(self, worker: WorkerSession, now: float) -> None:
        for pool in worker.pools.values():
            pool.shut = not worker.granted.fresh(self.sizes, now)

    def _announce(self, specs: Sequence[FunctionSpec], now: float) -> None:
        self._credit.announce(specs, now)
        called = self.limits.declare({spec.name: spec.downstreams for spec in specs}, now)
        if called and (gates := self.intake.gates).downstreams:
            self._shut(gates.again(self.roster.specs))

    def _shut(self, gates: Gates) -> None:
        self.intake.shut(gates)
        self._credit.close_cells()

    def _reroster(self, now: float) -> None:
        self.roster.rebuild(self.workers.values(), now)
        self._recredit(now)

    def _recredit(self, now: float) -> None:
        """Something that limits depend on changed."""
        self._credit.work_out(now, admits=self.ready and not self.draining)
