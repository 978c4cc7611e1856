"""Views for people and tests: Inspect and Explain, worked out from the core's state when asked."""

from __future__ import annotations

from collections import Counter

from ..wire.v1 import scheduler_pb2 as pb
from .core import Core
from .roster import RosterFunction
from .rules.explain import SENTENCES, Reason
from .rules.lanes import ID, KIND, Item, expired
from .rules.placement import room_of

#: Said of what runs and waits for other work.
PARENT = "it waits for other work that it submitted, and takes no place meanwhile"


def inspect(core: Core, scheduler: str, now: float) -> pb.InspectReply:
    """Everything held now, in numbers."""
    reply = pb.InspectReply(scheduler=scheduler, ready=core.ready)
    running: Counter[tuple[str, int]] = Counter(
        (item[KIND].function, item[KIND].priority) for worker in core.workers.values() for item in worker.open.values()
    )
    for name, function in core.roster.functions.items():
        alone = function.alone
        for level, lane in enumerate(function.lanes):
            apart = len(alone.lanes[level].items) if alone is not None else 0
            if lane.items or apart or running[name, level]:
                first = function if lane.items or alone is None else alone
                reason = waiting_reason(core, first, now).value if lane.items or apart else ""
                reply.lanes.add(
                    function=name,
                    priority=level,
                    waiting=len(lane.items) + apart,
                    running=running[name, level],
                    reason=reason,
                )
    for name, closed in sorted(core.outages.closed.items()):
        reply.clogged.add(
            function=name,
            state=core.outages.clogs[name].state.value,
            reason=closed.reason,
            since=closed.since,
            asking=len(core.roster.functions[name].asking),
        )
    for worker in core.workers.values():
        state = reply.workers.add(
            name=worker.name,
            session=worker.session,
            assigned=len(worker.open),
            draining=worker.draining,
            connected=worker.connected,
        )
        for pool in worker.pools.values():
            state.pools.add(name=pool.name, functions=sorted(pool.functions), slots=pool.slots, limit=pool.limit)
    for tailer in core.tailers.values():
        if not tailer.patient:
            reply.tailers.add(
                name=tailer.name, session=tailer.session, in_flight=tailer.held.items, connected=tailer.connected
            )
    for outcome, count in sorted(core.returns.outcomes.items()):
        reply.outcomes.add(outcome=outcome, count=count)
    for code, count in sorted(core.returns.reasons.items()):
        reply.reasons.add(reason=code, count=count)
    return reply


def explain(core: Core, id: str, now: float, wall: float) -> pb.ExplainReply:
    """Where one workload is and why it is not running. Looks everywhere: for people, not for programs."""
    for worker in core.workers.values():
        for ref, item in worker.open.items():
            if item[ID] == id:
                return pb.ExplainReply(
                    known=True,
                    state="running",
                    reason=Reason.RUNNING.value,
                    detail=PARENT if ref in worker.parents else SENTENCES[Reason.RUNNING],
                    worker=worker.name,
                    heard_at=worker.heard_at,
                )
    for function in core.roster.functions.values():
        for lane in function.rooms:
            for ahead, item in enumerate(lane.items):
                if item[ID] == id and lane is function.asking:
                    closed = core.outages.closed[function.name]
                    return pb.ExplainReply(
                        known=True, state="waiting", reason=Reason.OUTAGE.value, detail=closed.reason, ahead=ahead
                    )
                if item[ID] == id:
                    alone = function.alone
                    of = alone if alone is not None and lane in alone.lanes else function
                    reason = _item_reason(core, of, item, ahead, now, wall)
                    return pb.ExplainReply(
                        known=True, state="waiting", reason=reason.value, detail=SENTENCES[reason], ahead=ahead
                    )
    return pb.ExplainReply(
        known=False,
        detail="this scheduler does not have it: it is in its source, another scheduler has it, it was lost with a "
        "session, it has ended, or it never was",
    )


def _item_reason(core: Core, function: RosterFunction, item: Item, ahead: int, now: float, wall: float) -> Reason:
    if expired(item, wall):
        return Reason.EXPIRED
    reason = waiting_reason(core, function, now)
    return Reason.TURN if reason is Reason.WORKERS_FULL and ahead and _room(function) else reason


def waiting_reason(core: Core, function: RosterFunction, now: float) -> Reason:
    """Why the head of a function's lanes does not start: the first step that says no."""
    if not core.ready:
        return Reason.NOT_READY
    if core.draining:
        return Reason.DRAINING
    if function.able is None:
        return Reason.NO_WORKER
    if function.concurrency is not None and not function.concurrency.room:
        return Reason.CONCURRENCY
    if function.bucket is not None and not function.bucket.available(now):
        return Reason.RATE
    return Reason.TURN if _room(function) else Reason.WORKERS_FULL


def _room(function: RosterFunction) -> int:
    return room_of(function.able.pools) if function.able is not None else 0
