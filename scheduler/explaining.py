"""Explaining: why a workload is not running. The scheduler is asked first, about workloads that it was handed; then the
gateway, about those at rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..foundation import terminal
from ..foundation.clock import SYSTEM_CLOCK
from ..model.audit import HELD, IN_FLIGHT, UNREAD
from ..model.did_you_mean import meant
from ..model.errors import InvalidRequest, TailraceError, Unavailable
from ..model.job import TreeState, TreeStatus
from ..model.limits import Snapshot
from ..model.priority import Priority
from ..model.status import HANDED_OUT, SPOOLED, WorkloadStatus
from ..model.workload import Kind
from ..sdk import found_gateway
from ..sdk.discovery import find_scheduler
from ..wire.gateway import GatewayClient
from ..wire.scheduler import SchedulerClient
from ..wire.v1 import gateway_pb2 as pb_gateway
from ..wire.v1 import scheduler_pb2 as pb
from .rules.gate import Gates

#: The states of an item that has a place, for people.
_BY_STATE = {
    HELD: "its tailer read it and holds it: no credit, a gate, or its key keeps it",
    IN_FLIGHT: "its tailer handed it out, and the scheduler that was asked does not have it",
    UNREAD: "it rests in its source, unread",
    "delayed": "it failed, or waits for its time, and is in the delay service",
}


class AheadOfKey(NamedTuple):
    """The workload that goes before another one of its key, and the job of which that is an item; None: of none."""

    id: str
    key: str
    tree: TreeStatus | None = None


class Asks(NamedTuple):
    """Addresses of the scheduler and the gateway to ask; None: they are found."""

    scheduler: str | None
    gateway: str | None


async def explain_item(asks: Asks, id: str) -> dict[str, Any]:
    """The place of a workload and all that holds it, as plain data."""
    client = scheduler_client(asks.scheduler)
    unreachable = ""
    clogged: dict[str, str] = {}
    try:
        try:
            reply = await client.explain(id)
            if reply.known:
                said = {"id": id, "state": reply.state, "reason": reply.reason, "detail": reply.detail}
                return said | {"worker": reply.worker, "ahead": reply.ahead, "holds": _holds(reply)}
            clogged = {each.function: each.reason for each in (await client.inspect()).clogged}
        except Unavailable as error:
            unreachable = str(error)
        async with found_gateway.gateway_client(asks.gateway) as asked:
            status = (await asked.status([id]))[0]
            if status is None:
                return {"id": id} | (await _by_place(asked, id) or _unknown(unreachable))
            tree = None if status.ended else await _tree_of(asked, id)
            ahead = None if status.ended or status.state in HANDED_OUT else await _ahead(asked, id)
            reason, detail = resting(status, await asked.limits(), SYSTEM_CLOCK.wall(), clogged, tree, ahead)
        facts: dict[str, Any] = {
            "id": id,
            "state": status.state,
            "reason": reason,
            "detail": unreachable or detail,
            "holds": [],
        }
        if not status.ended and not unreachable:
            first = {"reason": reason, "detail": detail, "ends_at": _due(status, reason)}
            there = [] if reason == "handed_out" else _holds(await client.explain_kind(status.kind))
            same = {"pause": "paused", "drop": "dropped"}.get(reason, reason)
            facts["holds"] = [first, *(hold for hold in there if hold["reason"] != same)]
            if reason == "waiting" and there:
                facts |= {"reason": there[0]["reason"], "detail": there[0]["detail"]}
        return facts
    finally:
        await client.close()


async def _tree_of(asked: GatewayClient, id: str) -> TreeStatus | None:
    """The job of which a workload is an item; None: of none."""
    try:
        return await asked.job("", item=id)
    except TailraceError:
        return None


async def _ahead(asked: GatewayClient, id: str) -> AheadOfKey | None:
    """The workload of the same key that goes before a waiting one; None: none does."""
    try:
        found: pb_gateway.PeekReply = await asked.call("Peek", pb_gateway.PeekRequest(id=id))
    except TailraceError:
        return None
    return AheadOfKey(found.behind, found.key, await _tree_of(asked, found.behind)) if found.behind else None


async def explain_function(
    asks: Asks, function: str, collection: str, tenant: str, priority: str, source: str
) -> dict[str, Any]:
    """All that holds the workloads of a function. Raises InvalidRequest for one that nobody ever registered."""
    async with found_gateway.gateway_client(asks.gateway) as asked:
        specs = {spec.name: spec for spec in await asked.functions()}
    if function not in specs:
        raise InvalidRequest(
            f"no function {function!r:.200} is registered: {meant(function, specs, 'start a worker that runs it')}"
        )
    if priority:
        level = Priority.parse(priority)
    else:
        level = Priority(specs[function].priority)
    kind = Kind(function, level, collection, tenant)
    client = scheduler_client(asks.scheduler)
    try:
        reply = await client.explain_kind(kind, source)
    finally:
        await client.close()
    facts: dict[str, Any] = {"function": function, "collection": collection, "tenant": tenant, "priority": level.label}
    facts |= {"source": source, "waiting": reply.waiting, "running": reply.running}
    return facts | {"reason": reply.reason, "detail": reply.detail, "holds": _holds(reply)}


def scheduler_client(scheduler: str | None) -> SchedulerClient:
    """A client of the scheduler at this address; None: of the one that is found."""
    found = find_scheduler(scheduler)
    return SchedulerClient(found.addresses[0], found.reason)


def _holds(reply: pb.ExplainReply) -> list[dict[str, Any]]:
    return [
        {"reason": hold.reason, "detail": hold.detail, "ends_at": terminal.moment(hold.ends_at)} for hold in reply.holds
    ]


def _due(status: WorkloadStatus, reason: str) -> str | None:
    return terminal.moment(status.due_at) if reason in ("not_due", "handed_out") else None


async def _by_place(asked: GatewayClient, id: str) -> dict[str, Any] | None:
    """Explains an item that is named by its place in a source; None: the id names no place, or its tailer is not beside
    the gateway."""
    tailer, _, rest = id.partition("/")
    partition, _, position = rest.rpartition("/")
    if not (tailer and partition and position.isdecimal() and len(position) <= len(str(1 << 63))):
        return None
    try:
        audits = await asked.audit(tailer, partition, (int(position), int(position) + 1))
        told = next((each for each in (await asked.overview()).tailers if each.name == tailer), None)
    except TailraceError:
        return None
    state = next((label for audit in audits for label, count in audit.counts.items() if count), UNREAD)
    detail = _BY_STATE.get(state, f"it ended: {state}")
    holds = []
    if told is not None and state in (HELD, UNREAD) and (told.detail or told.why):
        holds = [{"reason": told.state, "detail": f"its tailer: {told.detail or told.why}", "ends_at": None}]
    return {"state": state, "reason": state.replace(" ", "_"), "detail": detail, "holds": holds}


def _unknown(unreachable: str) -> dict[str, Any]:
    detail = unreachable or (
        "no scheduler has it now; an item in a source of its own is known by its place (TAILER/PARTITION/POSITION) "
        "where its tailer runs beside the gateway"
    )
    return {"state": "unknown", "reason": "unknown", "detail": detail, "holds": []}


def resting(  # noqa: PLR0911 - one return per reason
    status: WorkloadStatus,
    limits: Snapshot,
    now: float,
    clogged: Mapping[str, str],
    tree: TreeStatus | None = None,
    ahead: AheadOfKey | None = None,
) -> tuple[str, str]:
    """The reason, a code and a sentence, for a workload that the asked scheduler does not have. `clogged`: function →
    why; `tree`: the job of which it is an item; `ahead`: the workload that goes before it."""
    name = status.function
    if status.ended:
        return "ended", status.reason or f"it ended as {status.state}"
    if status.state == SPOOLED:
        return "spooled", "it is on its gateway's disk, and goes to the store by itself as soon as that takes it"
    if status.state in HANDED_OUT:
        return "handed_out", _handed_out(status, now)
    if tree is not None and tree.state == TreeState.PAUSED:
        return "job_paused", f"it is an item of the job {tree.id!r}, which is paused: tailrace job resume {tree.id}"
    if tree is not None and tree.state == TreeState.ENDING:
        return "job_ends", f"it is an item of the job {tree.id!r}, which ends, and is cancelled: {tree.why}"
    if ahead is not None:
        return "key", f"it waits behind {ahead.id}, which has its key {ahead.key!r} and goes first{_shut(ahead.tree)}"
    if status.due_at > now:
        last = f"; its last run failed: {status.reason}" if status.reason else ""
        return "not_due", f"it is due in {terminal.distance(status.due_at - now)}{last}"
    calls = {spec.name: spec.downstreams for spec in limits.functions}
    for quota in limits.quotas:
        if quota.downstreams:
            calls[quota.function] = (*calls.get(quota.function, ()), *quota.downstreams)
    if (gate := Gates(limits.gates, calls=lambda function: calls.get(function, ())).of(status.kind)) is not None:
        end = f", until {terminal.moment(gate.until)}" if gate.until else ""
        why = f": {gate.why}" if gate.why else ""
        return gate.action, f"a gate of {gate.what} ({gate.action}) is set by {gate.who or 'an operator'}{end}{why}"
    if name in clogged:
        return "outage", clogged[name]
    if all(function.name != name for function in limits.functions):
        return "unknown_function", f"no worker has ever registered {name!r}"
    return "waiting", "it waits where it rests: a tailer takes it when the scheduler grants credit for its function"


def _shut(tree: TreeStatus | None) -> str:
    """The cause that keeps a workload waiting for which others wait, where that is its job; else empty."""
    if tree is None or tree.state not in (TreeState.PAUSED, TreeState.ENDING):
        return ""
    if tree.state == TreeState.ENDING:
        return f": an item of the job {tree.id!r}, which ends, and is cancelled"
    return f": an item of the job {tree.id!r}, which is paused: tailrace job resume {tree.id}"


def _handed_out(status: WorkloadStatus, now: float) -> str:
    """The sentence on a workload that a tailer holds, by its lease: until that is over nobody else gets it, even if it
    was lost meanwhile."""
    if status.due_at > now:
        over = f"ends in {terminal.distance(status.due_at - now)} unless it is renewed, and then it is handed out again"
    else:
        over = "is over: it is handed out again"
    return (
        "a tailer took it, and the scheduler that was asked does not have it: another one has, or it is on its way, or "
        f"it was lost with a session. Its lease {over}"
    )
