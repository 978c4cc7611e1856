"""Outliers among the workers of one scheduler: which of them get no work for a while, by the rule of
`rules/outlier.py`.

Nothing is counted before something fails somewhere; then everything is, until all is quiet again.
"""

from __future__ import annotations

import logging
from collections import Counter

from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS, Outcomes
from .roster import Roster
from .rules.outlier import LEAST, LONGEST_PAUSE, WorkerHealth, WorkerState, may_eject, stands_out
from .rules.placement import WorkerPool
from .sessions import WorkerSession

#: Ends that say that something is wrong where it ran, or with what ran.
_FAILED = frozenset({Outcome.RETRY, Outcome.FATAL, Outcome.LOST})

#: Seconds between looks at whether all is quiet again.
IDLE = 1.0

_LOG = logging.getLogger("tailrace.scheduler")


class Outliers:
    """The health of pools. `pause`: seconds of a first ejection; 0: there is none.

    Invariant: a pool that is OUT has the limit 0, one that is PROBING at most 1.
    """

    def __init__(self, pause: float, roster: Roster) -> None:
        self.known: dict[WorkerPool, WorkerHealth] = {}
        self._pause = pause
        self._roster = roster

    @property
    def active(self) -> bool:
        """Whether outcomes are counted."""
        return bool(self.known)

    def note(self, worker: WorkerSession, outcomes: Outcomes, now: float) -> bool:
        """Counts items that end there; they are still open. Returns whether `turn` has something to do for it."""
        if not self._pause:
            return False
        failed = [ref for ref, end in outcomes.ended.items() if end.outcome in _FAILED]
        if not failed and not self.known:
            return False
        news = not self.known
        bad = self._by_pool(worker, failed)
        for pool in bad:
            if pool not in self.known:
                self._begin(pool, now)
        if not self.known:  # it has no peers to be held against: what went well is not counted
            return False
        well = [*outcomes.succeeded, *(ref for ref, end in outcomes.ended.items() if end.outcome == Outcome.SUCCESS)]
        good = self._by_pool(worker, well)
        for pool in {**good, **bad}:
            if (health := self.known.get(pool)) is None:
                continue
            before = health.state
            health.note(good[pool], bad[pool], now)
            if bad[pool]:
                self._judge(pool, health, now)
            if health.state is not before:
                self._changed(pool, health)
                news = True
        return news

    def _begin(self, pool: WorkerPool, now: float) -> None:
        """Something failed there: from now on it is held against its peers, of which is known that they worked."""
        peers = self._peers(pool)
        for each in (pool, *peers) if peers else ():
            if each not in self.known:
                health = self.known[each] = WorkerHealth(self._pause, now)
                health.good = min(LEAST, float(each.worker.succeeded))

    def _judge(self, pool: WorkerPool, health: WorkerHealth, now: float) -> None:
        if health.state is not WorkerState.IN:
            return
        peers = [self.known[peer] for peer in self._peers(pool) if peer in self.known]
        inside = [peer for peer in peers if peer.state is WorkerState.IN]
        if stands_out(health, inside) and may_eject(len(peers) - len(inside), len(peers) + 1):
            health.eject(now)

    def _by_pool(self, worker: WorkerSession, refs: list[int]) -> Counter[WorkerPool]:
        flights = Counter([ref >> INDEX_BITS for ref in refs if ref in worker.open])
        found: Counter[WorkerPool] = Counter()
        for number, count in flights.items():
            if (flight := worker.flights.get(number)) is not None:
                found[flight.pool] += count
        return found

    def turn(self, now: float) -> set[WorkerPool]:
        """Lets pauses end. Returns the pools that take work again, which are to start slowly."""
        for pool in [pool for pool in self.known if _gone(pool, now)]:
            del self.known[pool]
        if all(health.quiet(now) for health in self.known.values()):
            self.known.clear()
        for pool, health in self.known.items():
            if health.state is WorkerState.OUT and (now >= health.until or not self._others_take(pool)):
                health.probe()
                self._changed(pool, health)
            self._apply(pool, health)
        return {
            pool for pool, each in self.known.items() if each.state is WorkerState.IN and pool.limit <= 1 < pool.full
        }

    def next_look(self, now: float) -> float:
        """Time at which `turn` has something to do, as far as is known."""
        return min([each.until for each in self.known.values() if each.state is WorkerState.OUT], default=now + IDLE)

    def state_of(self, pool: WorkerPool) -> WorkerState:
        """The state of any pool; IN where nothing is known of it."""
        health = self.known.get(pool)
        return WorkerState.IN if health is None else health.state

    def holds(self, pool: WorkerPool) -> bool:
        """Whether it is kept from work now, or given one item at a time."""
        return self.state_of(pool) is not WorkerState.IN

    def _peers(self, pool: WorkerPool) -> list[WorkerPool]:
        """Pools of other workers for the same functions."""
        functions = (self._roster.functions.get(name) for name in pool.functions)
        able = next((function.able for function in functions if function is not None and function.able), None)
        pools = () if able is None else able.pools
        return [other for other in pools if other is not pool and other.functions == pool.functions]

    def _others_take(self, pool: WorkerPool) -> bool:
        return any(not peer.shut and peer.limit for peer in self._peers(pool))

    def _apply(self, pool: WorkerPool, health: WorkerHealth) -> None:
        if health.state is WorkerState.OUT:
            pool.limit = 0
        elif health.state is WorkerState.PROBING:
            pool.limit = min(1, pool.full)

    def _changed(self, pool: WorkerPool, health: WorkerHealth) -> None:
        self._apply(pool, health)
        name = pool.worker.name
        match health.state:
            case WorkerState.OUT:
                share = f"{100 * health.share:.0f} % of its items fail, and few do at other workers"
                _LOG.warning("worker %s (pool %s) gets no items for now (outlier): %s", name, pool.name, share)
            case WorkerState.PROBING:
                _LOG.info("worker %s (pool %s) is given one item at a time, to see whether it works", name, pool.name)
            case WorkerState.IN:
                _LOG.info("worker %s (pool %s) works again", name, pool.name)


def _gone(pool: WorkerPool, now: float) -> bool:
    """Whether its worker is away for longer than it would be out: one that comes back meanwhile is as ill as it was."""
    return not pool.worker.connected and now - pool.worker.away_since > LONGEST_PAUSE
