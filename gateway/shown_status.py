"""The status of a workload for users, made of the stored one."""

from __future__ import annotations

from ..model.status import WorkloadStatus
from ..stores.queue.lookup import Status


def shown_status(status: Status) -> WorkloadStatus:
    """The status for users, of a stored one."""
    return WorkloadStatus(
        id=status.id,
        state=status.state.label,
        kind=status.kind,
        attempts=status.attempts,
        crashes=status.crashes,
        created_at=status.created_at,
        due_at=status.due,
        ended_at=status.ended_at,
        reason=status.reason,
        progress=status.progress,
    )
