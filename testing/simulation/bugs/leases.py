"""Mistakes in the lease chain and in sessions (L1 to L10)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from ....model import lease
from ....model.workload import INDEX_BITS
from ....runtime.deadman import Deadman, Relative
from ....runtime.pool import Pool
from ....runtime.rules import attempt
from ....runtime.rules.leases import Leases
from ....scheduler import core as core_
from ....scheduler.core import Core
from ....scheduler.rules import leases as scheduler_leases
from ....tailers import session as session_
from ....tailers.session import SchedulerSession
from ....wire.link import Link
from ..host import here
from ..planting import Bug, breaks, bug, instead

# ---- the lease chain (L1 to L10)


@breaks("L7", by="two at once")
def _no_kernel_timer() -> Bug:
    return instead(Deadman, "_set", lambda self: None)


@breaks("L7", by="two at once")
def _timer_at_the_latest_deadline() -> Bug:
    def latest(self: Leases, keys: Iterable[int]) -> float:
        flights = self._flights
        known = [flights[flight].deadline for flight in {key >> INDEX_BITS for key in keys} if flight in flights]
        return max(known, default=0.0)

    return instead(Leases, "earliest", latest)


@breaks("L7", by="two at once")
def _timer_not_shortened_when_set_late() -> Bug:
    def once(self: Relative, deadline: float) -> None:
        self._arm(max(1e-6, deadline - self._clock()) if deadline else 0.0)

    return instead(Relative, "__call__", once)


@breaks("L1", by="two at once")
def _worker_granted_more_than_the_scheduler_holds() -> Bug:
    return instead(scheduler_leases, "grant_to_worker", lambda sizes, held: sizes.worker if held > 0 else 0.0)


@breaks("L1", by="granted")
def _scheduler_granted_more_than_the_tailer_holds() -> Bug:
    return instead(session_, "grant_to_scheduler", lambda sizes, held: sizes.scheduler if held > 0 else 0.0)


@breaks("L1", by="two at once")
def _kill_margin_and_drift_left_out() -> Bug:
    stack = contextlib.ExitStack()
    stack.enter_context(
        instead(scheduler_leases, "grant_to_worker", lambda sizes, held: max(0.0, min(sizes.worker, held)))
    )
    stack.enter_context(instead(core_, "is_enough_to_start", lambda sizes, held: held > 0))
    stack.enter_context(instead(scheduler_leases, "wait_for_worker", lambda sizes, granted: granted))
    stack.enter_context(instead(session_, "grant_to_scheduler", lambda sizes, held: min(sizes.scheduler, held)))
    stack.enter_context(instead(lease.LeaseSizes, "drift", 1.0))
    return stack


@breaks("L4", by="two at once")
def _worker_counts_a_renewal_from_its_receipt() -> Bug:
    real = Leases.granted

    def received(self: Leases, session: int, request: int, leases: Any, revoked: Any) -> None:
        known = self._sessions.get(session)
        if known is not None and request in known.requests:
            known.requests[request] = _now()
        real(self, session, request, leases, revoked)

    return instead(Leases, "granted", received)


@breaks("L5", by="two at once")
def _worker_counts_its_first_lease_from_its_receipt() -> Bug:
    real = Leases.assigned

    def received(self: Leases, session: int, group: int, flight: int, request: int, lease: float, now: float) -> Any:
        known = self._sessions.get(session)
        if known is not None and request in known.requests:
            known.requests[request] = now
        return real(self, session, group, flight, request, lease, now)

    return instead(Leases, "assigned", received)


@breaks("L8", by="two at once")
def _supervisor_reports_what_it_did_not_reap() -> Bug:
    real = Pool.stop_items

    def stop(self: Pool, keys: set[int], why: attempt.Stop) -> None:
        real(self, keys, why)
        for executor in self.executors:
            here = executor.live & keys
            executor.live -= here
            self._tell([], {key: attempt.stopped(why) for key in sorted(here)})

    return instead(Pool, "stop_items", stop)


@breaks("L9", by="fence")
def _scheduler_dispatches_again_by_itself() -> Bug:
    real = Core.worker_away

    def away(self: Core, worker: Any, now: float) -> None:
        _, items = self.returns.release(worker, list(worker.open))
        self.intake.put_back(items)
        real(self, worker, now)

    return instead(Core, "worker_away", away)


@breaks("L1", by="two at once")
def _scheduler_calls_a_silent_worker_lost_at_once() -> Bug:
    real = Core.worker_away

    def away(self: Core, worker: Any, now: float) -> None:
        real(self, worker, now)
        self.forget_worker(worker, now)

    return instead(Core, "worker_away", away)


@breaks("L1", by="two at once")
def _tailer_hands_out_again_without_waiting() -> Bug:
    return instead(SchedulerSession, "wait_before_again", lambda self: 0.0)


# ---- sessions


@breaks("L3", by="unfinished")
def _unacknowledged_frames_are_not_sent_again() -> Bug:
    def gone(self: Link) -> list[Any]:
        self._last_sent -= len(self._sent)
        self._sent.clear()
        return []

    return instead(Link, "unacknowledged", gone)


@bug
def _credit_leaks_at_a_reconnect() -> Bug:
    real = SchedulerSession.lost

    def lost(self: SchedulerSession) -> None:
        out, total = dict(self.credit._out), self.credit.out
        real(self)
        self.credit._out.update(out)
        self.credit.out = total

    return instead(SchedulerSession, "lost", lost)


def _now() -> float:
    return here().clock.monotonic()
