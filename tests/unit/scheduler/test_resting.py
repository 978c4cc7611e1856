"""What `tailrace explain` says of a workload that rests in the queue."""

from __future__ import annotations

from tailrace.scheduler.commands import resting
from tailrace.sdk.model.function_spec import FunctionSpec
from tailrace.sdk.model.limits import Gate, Snapshot
from tailrace.sdk.model.status import WorkloadStatus
from tailrace.sdk.model.workload import Kind

CLOGGED = {"charge": "charge is clogged: of its last first attempts 90 % failed (no database)"}
LIMITS = Snapshot(functions=[FunctionSpec("charge"), FunctionSpec("mail")])


def status(function: str, **facts: float) -> WorkloadStatus:
    return WorkloadStatus("id", "new", Kind(function), **facts)


def test_of_a_clogged_function_it_says_so_unless_something_nearer_holds_it() -> None:
    assert resting(status("charge"), LIMITS, 10.0, CLOGGED) == ("outage", CLOGGED["charge"])
    assert resting(status("mail"), LIMITS, 10.0, CLOGGED)[0] == "waiting"
    assert resting(status("charge", due_at=20.0), LIMITS, 10.0, CLOGGED)[0] == "not_due"
    gated = Snapshot(gates=[Gate("charge", "", "pause")], functions=LIMITS.functions)
    assert resting(status("charge"), gated, 10.0, CLOGGED)[0] == "pause"
