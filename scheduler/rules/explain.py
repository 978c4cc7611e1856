"""Explain: the closed set of reasons why an item is where it is, with a sentence for people.

Every step of the way gives one of these; nothing is refused, held or kept waiting without a name for it.
"""

from __future__ import annotations

from enum import StrEnum

from ...model.outcome import EXPIRED_WHY
from .adaptive import AdaptiveLimit
from .estimate import needs, usual
from .flow import Flow
from .limit import Limit
from .retry_budget import RetryBudget
from .unit_limit import UnitLimit


class Reason(StrEnum):
    """The codes. They appear in outcomes, in Inspect and in Explain, and never change meaning."""

    NOT_READY = "not_ready"
    REJOINING = "rejoining"
    DRAINING = "draining"
    PAUSED = "paused"
    DROPPED = "dropped"
    NO_WORKER = "no_worker"
    NO_CREDIT = "no_credit"
    LANE_FULL = "lane_full"
    LEASE_OVER = "lease_over"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    CONCURRENCY = "concurrency"
    RATE = "rate"
    WORKERS_FULL = "workers_full"
    TURN = "turn"
    RUNNING = "running"
    WORKER_LOST = "worker_lost"
    OUTAGE = "outage"
    NOT_OWNER = "not_owner"
    RESERVE = "reserve"
    DOWNSTREAM = "downstream"
    RETRY_BUDGET = "retry_budget"
    UNITS = "units"
    MISFIT = "misfit"


SENTENCES: dict[Reason, str] = {
    Reason.REJOINING: "this scheduler was restarted, and workers that are not back yet may run counted items",
    Reason.NOT_READY: "this scheduler has not received its gates and quotas yet",
    Reason.DRAINING: "this scheduler is shutting down and starts nothing more",
    Reason.PAUSED: "an operator's gate pauses it",
    Reason.DROPPED: "an operator's gate drops it",
    Reason.NO_WORKER: "no worker that can run this function is connected",
    Reason.NO_CREDIT: "the tailer's session pushed more than its credit",
    Reason.LANE_FULL: "the lane of this function and priority is full",
    Reason.LEASE_OVER: "the lease on it ended before it could start",
    Reason.EXPIRED: EXPIRED_WHY,
    Reason.CANCELLED: "it was cancelled before it started",
    Reason.CONCURRENCY: "as many items are running as a concurrency limit allows",
    Reason.RATE: "a rate limit has no token left",
    Reason.WORKERS_FULL: "every worker that can run this function is full",
    Reason.TURN: "it is waiting its turn in its lane",
    Reason.RUNNING: "it was handed to a worker",
    Reason.WORKER_LOST: "its worker disappeared and its lease there is over; whether it ran is not known",
    Reason.OUTAGE: (
        "the circuit breaker of this function is open: nearly all first attempts fail; "
        "one item at a time is tried until one succeeds"
    ),
    Reason.RESERVE: "slots are empty, and kept for others by a reserve or a ceiling",
    Reason.DOWNSTREAM: "a downstream that its function calls takes no more for now, as that said itself",
    Reason.RETRY_BUDGET: "the retry budget of its function, a part of its first attempts, is used up",
    Reason.UNITS: "a rate in units (such as tokens, rows or bytes) has less left than this item needs",
    Reason.MISFIT: "the version of its function at one worker does not take its payload; another version is tried",
    Reason.NOT_OWNER: "another owner asked about its source; this one has not shown that it still owns it",
}


def held_by(flow: Flow, limit: Limit, now: float) -> bool:
    """Whether a limit keeps the head of a flow waiting."""
    if isinstance(limit, UnitLimit):
        return flow.asleep is limit or limit.waiting or not limit.enough(limit.holds(now), _needed(flow, limit))
    reserver, room = limit.reserver, limit.room(now)
    if reserver is not None and reserver is not flow and flow.rank >= reserver.rank:
        room = limit.beside(room)
    return room <= 0


def limit_reason(limit: Limit) -> Reason:
    """The code of a limit that has no room."""
    if isinstance(limit, AdaptiveLimit):
        return Reason.DOWNSTREAM
    if isinstance(limit, RetryBudget):
        return Reason.RETRY_BUDGET
    if isinstance(limit, UnitLimit):
        return Reason.UNITS
    return Reason.RATE if limit.by_rate() else Reason.CONCURRENCY


def limit_hold(flow: Flow, limit: Limit, now: float) -> str:
    """The sentence on a limit that keeps a flow waiting: which one, how full, and until when as far as known."""
    if isinstance(limit, AdaptiveLimit):
        return f"{limit.name} takes no more for now: {limit.full(now)}"
    if isinstance(limit, UnitLimit):
        return _unit_hold(flow, limit, now)
    said = f"the limit of {limit.name} is used up: {limit.full(now)}"
    if (at := limit.next_at()) is not None and at > now:
        return f"{said}; the next token comes in {at - now:.2g} s"
    if limit.reserver is not None and limit.reserver is not flow:
        waited = f"{_named(limit.reserver)}, which waited too long"
        return f"the limit of {limit.name} ({limit.full(now)}) is reserved for {waited}"
    return said


def ends_at(flow: Flow, limit: Limit) -> float | None:
    """Time at which a limit that keeps the head of a flow waiting has room for it, if nothing else takes it; None: not
    known."""
    if isinstance(limit, UnitLimit):
        return limit.has_at(_needed(flow, limit))
    return limit.next_at()


def _needed(flow: Flow, limit: UnitLimit) -> float:
    return needs(flow, limit) if flow.items else usual(flow)[flow.measured.index(limit)]


def _unit_hold(flow: Flow, limit: UnitLimit, now: float) -> str:
    needed = _needed(flow, limit)
    said = f"the limit of {limit.name} has {limit.full(now)}, and the next item is estimated at {needed:,.10g}"
    if (at := limit.has_at(needed)) is not None and at > now:
        return f"{said}; there is enough in {at - now:.2g} s"
    return f"{said}; others are before it there"


def _named(flow: Flow) -> str:
    return " of tenant ".join(name for name in (flow.kind.function, flow.kind.tenant) if name)
