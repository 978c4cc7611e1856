"""The gateway's messages ↔ the model, both ways. Nothing here waits or decides."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

from ..model.adaptive import Adaptive, adaptive_to_dict
from ..model.gate import Gate
from ..model.limits import Quota, Snapshot
from ..model.one_item import Peeked, Rescheduled
from ..model.overview import TailerOverview
from ..model.status import WorkloadStatus
from ..model.tries import Try
from ..model.unit_rate import UnitRate, unit_rate_to_dict
from ..model.workload import Headers, Kind
from .convert import function_from_wire, function_to_wire, headers_from_wire, headers_to_wire
from .v1 import gateway_pb2 as pb

_TAILER_FIELDS = tuple(name for name in TailerOverview.__slots__ if name != "classes")


class Accepted(NamedTuple):
    """The answer to the submission of one workload: its id, whether its dedupe key was known already, and whether it
    rests on the gateway's disk only, because the store is away."""

    id: str
    duplicate: bool
    spooled: bool = False


def new_workload(
    function: str,
    payload: bytes,
    *,
    priority: int | None = None,
    collection: str = "",
    tenant: str = "",
    key: str = "",
    headers: Headers = (),
    delay: float = 0.0,
    at: float | None = None,
    dedupe_key: str = "",
    expires_after: float | None = None,
    on_done: str = "",
) -> pb.NewWorkload:
    """The message of one workload to submit. `delay` and `expires_after` in seconds, `at` in wall clock seconds."""
    message = pb.NewWorkload(function=function, payload=payload)
    # Fields with defaults are not set: setting each takes protobuf seven times as long.
    if priority is not None:
        message.priority = priority
    if collection:
        message.collection = collection
    if tenant:
        message.tenant = tenant
    if key:
        message.key = key
    if headers:
        message.headers.extend(headers_to_wire(headers))
    if delay:
        message.delay = delay
    if at is not None:
        message.at = at
    if dedupe_key:
        message.dedupe_key = dedupe_key
    if expires_after is not None:
        message.expires_after = expires_after
    if on_done:
        message.on_done = on_done
    return message


def accepted(reply: pb.SubmitReply) -> list[Accepted]:
    """The answers to a request, in the order of its workloads."""
    ids = [*reply.ids]
    duplicates, spooled = set(reply.duplicates), reply.spooled
    if not duplicates:
        return [Accepted(id, False, spooled) for id in ids]
    return [Accepted(id, index in duplicates, spooled) for index, id in enumerate(ids)]


def status_to_wire(id: str, status: WorkloadStatus | None) -> pb.WorkloadStatus:
    """A status as a message; for None one that says that the id is not known."""
    if status is None:
        return pb.WorkloadStatus(id=id)
    kind = status.kind
    return pb.WorkloadStatus(
        id=id,
        known=True,
        state=status.state,
        function=kind.function,
        priority=kind.priority,
        collection=kind.collection,
        tenant=kind.tenant,
        attempts=status.attempts,
        crashes=status.crashes,
        created_at=status.created_at,
        due_at=status.due_at,
        ended_at=status.ended_at,
        reason=status.reason,
        progress=status.progress,
        tries=[pb.Try(**each._asdict()) for each in status.tries],
        worker=status.worker,
        heard_at=status.heard_at,
        created_by=status.created_by,
    )


def status_from_wire(message: pb.WorkloadStatus) -> WorkloadStatus | None:
    """The inverse of `status_to_wire`; None when the id is not known."""
    if not message.known:
        return None
    return WorkloadStatus(
        id=message.id,
        state=message.state,
        kind=Kind(message.function, message.priority, message.collection, message.tenant),
        attempts=message.attempts,
        crashes=message.crashes,
        created_at=message.created_at,
        due_at=message.due_at,
        ended_at=message.ended_at,
        reason=message.reason,
        progress=message.progress,
        tries=tuple(Try(each.at, each.outcome, each.reason) for each in message.tries),
        worker=message.worker,
        heard_at=message.heard_at,
        created_by=message.created_by,
    )


def rescheduled_from_wire(id: str, reply: pb.RescheduleReply) -> Rescheduled:
    """The outcome of a call that reschedules a workload."""
    return Rescheduled(reply.status.id or id, reply.outcome, reply.why, status_from_wire(reply.status))


def peeked_from_wire(reply: pb.PeekReply) -> Peeked:
    """The content of a workload, as the call Peek answers it."""
    status = status_from_wire(reply.status)
    assert status is not None, "a gateway shows nothing of a workload that it does not know"
    headers = headers_from_wire(reply.headers)
    return Peeked(status, reply.payload, reply.size, reply.key, headers, reply.expires_at, reply.behind)


def gate_to_wire(gate: Gate) -> pb.Gate:
    """A gate as a message."""
    return pb.Gate(
        function=gate.function,
        collection=gate.collection,
        action=gate.action,
        who=gate.who,
        why=gate.why,
        since=gate.since,
        version=gate.version,
        tenant=gate.tenant,
        downstream=gate.downstream,
        source=gate.source,
        until=gate.until,
    )


def gate_from_wire(message: pb.Gate) -> Gate:
    """The inverse of `gate_to_wire`."""
    return Gate(
        message.function,
        message.collection,
        message.action,
        message.who,
        message.why,
        message.since,
        message.version,
        message.tenant,
        message.downstream,
        message.source,
        message.until,
    )


def quota_to_wire(quota: Quota) -> pb.Quota:
    """A quota as a message."""
    return pb.Quota(
        function=quota.function,
        concurrency=quota.concurrency,
        rate=quota.rate,
        burst=quota.burst,
        weight=quota.weight,
        collection=quota.collection,
        tenant=quota.tenant,
        downstream=quota.downstream,
        per=quota.per,
        max_values=quota.max_values,
        downstreams=quota.downstreams,
        reserve=quota.reserve,
        keeps=not quota.lend,
        opportunistic=quota.opportunistic,
        adaptive=None if quota.adaptive is None else pb.Adaptive(**adaptive_to_dict(quota.adaptive)),
        highest=quota.highest,
        units=[pb.UnitRate(**unit_rate_to_dict(each)) for each in quota.units],
    )


def quota_from_wire(message: pb.Quota) -> Quota:
    """The inverse of `quota_to_wire`."""
    return Quota(
        message.function,
        message.concurrency,
        message.rate,
        message.burst,
        message.weight,
        message.collection,
        message.tenant,
        message.downstream,
        message.per,
        message.max_values,
        tuple(message.downstreams),
        message.reserve,
        not message.keeps,
        message.opportunistic,
        _adaptive(message.adaptive) if message.HasField("adaptive") else None,
        message.highest,
        tuple([UnitRate(each.unit, each.rate, each.burst, each.estimate) for each in message.units]),
    )


def _adaptive(message: pb.Adaptive) -> Adaptive:
    return Adaptive(**{field.name: getattr(message, field.name) for field in fields(Adaptive)})


def snapshot_to_wire(snapshot: Snapshot) -> pb.ControlSnapshot:
    """A snapshot as a message."""
    return pb.ControlSnapshot(
        version=snapshot.version,
        gates=[gate_to_wire(gate) for gate in snapshot.gates],
        quotas=[quota_to_wire(quota) for quota in snapshot.quotas],
        functions=[function_to_wire(spec) for spec in snapshot.functions],
        quotas_version=snapshot.quotas_version,
    )


def snapshot_from_wire(message: pb.ControlSnapshot) -> Snapshot:
    """The inverse of `snapshot_to_wire`."""
    return Snapshot(
        version=message.version,
        gates=[gate_from_wire(gate) for gate in message.gates],
        quotas=[quota_from_wire(quota) for quota in message.quotas],
        functions=[function_from_wire(function) for function in message.functions],
        quotas_version=message.quotas_version,
    )
