"""A status as users see it, of what is stored."""

from __future__ import annotations

from ..model.status import WorkloadStatus
from ..stores.queue.lookup import Status


def seen(status: Status) -> WorkloadStatus:
    """What users see of what is stored."""
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
