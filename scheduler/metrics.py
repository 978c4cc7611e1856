"""A scheduler's numbers, out of its answer to Inspect."""

from __future__ import annotations

from ..model import metrics
from ..model.metrics import Sample, sorted_samples
from ..model.outcome import Outcome
from ..model.priority import Priority
from ..wire.v1 import scheduler_pb2 as pb


def samples(reply: pb.InspectReply) -> list[Sample]:
    """Everything, in the order of the catalogue."""
    found = [
        Sample(metrics.READY, (), int(reply.ready)),
        Sample(metrics.WORKERS, (), sum(1 for worker in reply.workers if worker.connected)),
        Sample(metrics.TAILERS, (), sum(1 for tailer in reply.tailers if tailer.connected)),
    ]
    for lane in reply.lanes:
        labels = (("function", lane.function), ("priority", Priority.of_rank(lane.priority).label))
        found += [Sample(metrics.WAITING, labels, lane.waiting), Sample(metrics.RUNNING, labels, lane.running)]
    for clogged in reply.clogged:
        found.append(Sample(metrics.CLOGGED, (("function", clogged.function), ("state", clogged.state)), 1))
    for state in reply.downstreams:
        labels = (("downstream", state.downstream), ("tenant", state.tenant))
        if state.HasField("rate"):
            found.append(Sample(metrics.DOWNSTREAM_RATE, labels, state.rate))
        found.append(Sample(metrics.DOWNSTREAM_STATE, (*labels, ("state", state.state)), 1))
        found.append(Sample(metrics.DOWNSTREAM_THROTTLED, labels, state.throttled))
        found.append(Sample(metrics.DOWNSTREAM_SHRANK, labels, state.shrank))
    for unknown in reply.unknown_downstreams:
        found.append(Sample(metrics.DOWNSTREAM_UNKNOWN, (("function", unknown.reason),), unknown.count))
    for budget in reply.retries:
        of = (("function", budget.function),)
        found += [Sample(metrics.RETRY_RATE, of, budget.rate), Sample(metrics.RETRIES_WAITING, of, budget.waiting)]
    for unit in reply.units:
        names = ("function", "collection", "tenant", "downstream", "unit")
        left = tuple((name, getattr(unit, name)) for name in names)
        found += [Sample(metrics.UNITS_LEFT, left, unit.left), Sample(metrics.UNITS_WAITING, left, unit.waiting)]
    for each in reply.outcomes:
        found.append(Sample(metrics.ENDED, (("outcome", Outcome(each.outcome).name.lower()),), each.count))
    for code in reply.reasons:
        found.append(Sample(metrics.REASONS, (("reason", code.reason),), code.count))
    return sorted_samples(found)
