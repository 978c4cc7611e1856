"""One workload at a time, as an operator sees it: its contents, and the answer to a wish to change it."""

from __future__ import annotations

from dataclasses import dataclass

from .status import WorkloadStatus
from .workload import Headers

#: Outcomes of a wish: changed as asked; changed, but behind an older one of its key; refused, since it would be due
#: when it may not start any more; handed out already; over; unknown. In the last four nothing was changed.
CHANGED, BEHIND, EXPIRES, OUT, ENDED, UNKNOWN = "changed", "behind", "expires", "out", "ended", "unknown"


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """The answer to a wish for another due time or priority.

    outcome   changed | behind (changed; an older workload of its key goes first) | expires | out | ended | unknown
    why       what it is, and what can be done; empty: it is as was asked
    status    as it is now; None: it is not known
    """

    id: str
    outcome: str
    why: str = ""
    status: WorkloadStatus | None = None

    @property
    def changed(self) -> bool:
        """Whether it is as was asked."""
        return self.outcome in (CHANGED, BEHIND)


@dataclass(frozen=True, slots=True)
class Peeked:
    """A look at a workload that has not ended: its status, and the first bytes of its payload, of `size` in all.

    key         the ordering key; empty: none
    expires_at  wall clock seconds from which it is not started any more; 0: there is no such time
    behind      the workload of its key that goes before it; empty: none does
    """

    status: WorkloadStatus
    payload: bytes
    size: int
    key: str = ""
    headers: Headers = ()
    expires_at: float = 0.0
    behind: str = ""
