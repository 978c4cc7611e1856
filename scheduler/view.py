"""Views for people and tests: Inspect and Explain, worked out from the core's state when asked."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice

from ..model.workload import Kind
from ..wire.v1 import scheduler_pb2 as pb
from .core import Core
from .holds import Hold, holds
from .roster import RosterFunction
from .rules.explain import SENTENCES, Reason, held_by, limit_hold, limit_reason
from .rules.flow import ID, KIND, SESSION, Flow, Item, expired
from .rules.placement import room_of

#: Said where nothing holds a kind.
NOTHING = "nothing holds it here: it starts as soon as it is pushed and has its turn"
#: The state of a downstream that has no limit, since it throttled long ago, or only accounts, or is not to have one.
UNLIMITED = "unlimited"
#: Rates in units that are shown.
MOST_UNITS_SHOWN = 1_000
#: Said of what runs and waits for other work.
PARENT = "it waits for other work that it submitted, and takes no place meanwhile"


def inspect(core: Core, scheduler: str, now: float, wall: float = 0.0) -> pb.InspectReply:
    """Everything held now, in numbers."""
    reply = pb.InspectReply(scheduler=scheduler, ready=core.ready)
    running: Counter[tuple[str, int]] = Counter(
        (item[KIND].function, item[KIND].priority) for worker in core.workers.values() for item in worker.open.values()
    )
    for name, function in core.roster.functions.items():
        waiting: Counter[int] = Counter()
        first: dict[int, Flow] = {}
        for flow in function.all_flows:
            if flow.items:
                waiting[flow.rank] += len(flow.items)
                first.setdefault(flow.rank, flow)
        for level in range(function.levels):
            if waiting[level] or running[name, level]:
                reason = waiting_reason(core, first[level], now)[0].value if level in first else ""
                reply.lanes.add(
                    function=name,
                    priority=level,
                    waiting=waiting[level],
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
    _protected(core, reply, now, wall)
    _measured(core, reply, now)
    _workers(core, reply)
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


def _workers(core: Core, reply: pb.InspectReply) -> None:
    """The workers with their pools, and how many of each kind run there."""
    for worker in core.workers.values():
        state = reply.workers.add(
            name=worker.name,
            session=worker.session,
            assigned=len(worker.open),
            draining=worker.draining,
            connected=worker.connected,
            labels=worker.labels,
        )
        for pool in worker.pools.values():
            state.pools.add(
                name=pool.name,
                functions=sorted(pool.functions),
                slots=pool.slots,
                limit=pool.limit,
                alone=pool.alone,
                health=core.protection.outliers.state_of(pool).value,
                failure=pool.failure,
            )
    kinds = Counter(
        item[KIND] for worker in core.workers.values() for ref, item in worker.open.items() if ref not in worker.parents
    )
    for kind, items in kinds.items():
        reply.running.add(
            function=kind.function, priority=kind.priority, collection=kind.collection, tenant=kind.tenant, items=items
        )


def _protected(core: Core, reply: pb.InspectReply, now: float, wall: float) -> None:
    """Adds the limits that downstreams were found to take, and the budgets of retries."""
    known = core.protection
    for (name, tenant), limit in sorted(known.adaptive.items()):
        reply.downstreams.add(
            downstream=name,
            tenant=tenant,
            state=limit.state.value,
            rate=limit.allowed if limit.allowed < math.inf else None,
            running=limit.running,
            throttled=limit.throttled if tenant else known.throttled[name],
            shrank=limit.shrank,
            shrank_at=wall - (now - limit.shrank_at) if limit.shrank_at else 0.0,
            probe_at=wall + max(0.0, limit.until - now) if limit.shut else 0.0,
            reason=limit.why,
        )
    for name in sorted(known.throttled.keys() - {name for name, tenant in known.adaptive if not tenant}):
        reply.downstreams.add(downstream=name, state=UNLIMITED, throttled=known.throttled[name])
    for name, budget in sorted(known.budgets.items()):
        waiting = sum([len(flow.items) for flow in core.roster.functions[name].all_flows if flow.again])
        reply.retries.add(function=name, rate=budget.rate, waiting=waiting)
    for name, count in sorted((known.unknown + core.limits.unknown).items()):
        reply.unknown_downstreams.add(reason=name, count=count)


def _measured(core: Core, reply: pb.InspectReply, now: float) -> None:
    """Adds the amounts that rates in units have left."""
    for (function, collection, tenant, downstream, _), limit in islice(core.limits.charges.units(), MOST_UNITS_SHOWN):
        reply.units.add(
            function=function,
            collection=collection,
            tenant=tenant,
            downstream=downstream,
            unit=limit.unit,
            left=limit.holds(now),
            burst=limit.burst,
            rate=limit.rate,
            waiting=sum([turns.size for turns in limit.sleepers.values()]),
        )


def explain(core: Core, id: str, now: float, wall: float) -> pb.ExplainReply:
    """Tells where one workload is and why it is not running. Looks everywhere: for people, not for programs."""
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
        for ahead, item in enumerate(function.asking.items):
            if item[ID] == id:
                why = core.outages.closed[function.name].reason
                return _waits(core, item, (Reason.OUTAGE, why), ahead, now, wall)
        for flow in function.all_flows:
            for ahead, item in enumerate(flow.items):
                if item[ID] == id:
                    return _waits(core, item, _item_reason(core, flow, item, ahead, now, wall), ahead, now, wall)
    return pb.ExplainReply(
        known=False,
        detail="this scheduler does not have it: it is in its source, another scheduler has it, it was lost with a "
        "session, it has ended, or it never was",
    )


def explain_kind(core: Core, kind: Kind, source: str, now: float, wall: float) -> pb.ExplainReply:
    """Tells what holds items of a kind, and how many of them are here."""
    function = core.roster.functions.get(kind.function)
    flows = [] if function is None else function.all_flows
    out = [item[KIND] for worker in core.workers.values() for item in worker.open.values()]
    reply = pb.ExplainReply(
        known=function is not None,
        waiting=sum(item[KIND] == kind for flow in flows for item in flow.items),
        running=out.count(kind),
    )
    found = holds(core, kind, source, now, wall)
    reply.holds.extend(map(_hold, found))
    reason, detail = (found[0].reason, found[0].detail) if found else (Reason.TURN, NOTHING)
    reply.reason, reply.detail = reason.value, detail
    return reply


def _hold(hold: Hold) -> pb.Hold:
    return pb.Hold(reason=hold.reason.value, detail=hold.detail, ends_at=hold.ends_at)


def _waits(core: Core, item: Item, why: tuple[Reason, str], ahead: int, now: float, wall: float) -> pb.ExplainReply:
    reason, detail = why
    found = holds(core, item[KIND], item[SESSION].name, now, wall)
    if ahead:
        found.append(
            Hold(Reason.TURN, f"{ahead} {'item' if ahead == 1 else 'items'} came before it into the same lane")
        )
    if all(hold.reason is not reason for hold in found):
        found.insert(0, Hold(reason, detail))
    reply = pb.ExplainReply(known=True, state="waiting", reason=reason.value, detail=detail, ahead=ahead)
    reply.holds.extend(map(_hold, found))
    return reply


def _item_reason(core: Core, flow: Flow, item: Item, ahead: int, now: float, wall: float) -> tuple[Reason, str]:
    if expired(item, wall):
        return Reason.EXPIRED, SENTENCES[Reason.EXPIRED]
    reason, detail = waiting_reason(core, flow, now)
    if reason is Reason.WORKERS_FULL and ahead and _room(flow.function):
        reason = Reason.TURN
        detail = SENTENCES[reason]
    return reason, detail


def waiting_reason(core: Core, flow: Flow, now: float) -> tuple[Reason, str]:
    """The reason the head of a flow does not start: the first step that says no, or every limit that does."""
    function: RosterFunction = flow.function
    reason = Reason.TURN if _room(function) else Reason.WORKERS_FULL
    if not core.ready:
        reason = Reason.NOT_READY
    elif core.draining:
        reason = Reason.DRAINING
    elif function.able is None:
        reason = Reason.NO_WORKER
    elif holds := [limit for limit in (*flow.charges, *flow.measured) if held_by(flow, limit, now)]:
        return limit_reason(holds[0]), "; ".join(limit_hold(flow, limit, now) for limit in holds)
    return reason, SENTENCES[reason]


def _room(function: RosterFunction) -> int:
    return room_of(function.able.pools) if function.able is not None else 0
