"""The status of one workload, as a user may know it."""

from __future__ import annotations

from dataclasses import dataclass

from .claim import State
from .tries import Try
from .workload import Kind

SUCCESS = State.SUCCESS.label
#: The header that says who submitted an item.
CREATED_BY = "created-by"
#: On a gateway's disk and not in the queue yet.
SPOOLED = "spooled"
#: The names of those in which a tailer holds it under a lease, whose end is `due_at` then.
HANDED_OUT = frozenset(state.label for state in (State.ENQUEUED, State.PROCESSING))
#: The names of the states after which nothing happens any more. The live ones are numbered below SUCCESS.
ENDED = frozenset(state.label for state in State if state >= State.SUCCESS)


@dataclass(frozen=True, slots=True)
class WorkloadStatus:
    """Times are wall clock seconds. `due_at` 0: it will not run again, while it is handed out the end of its lease;
    `ended_at` 0: it has not ended.

    state     spooled | new | enqueued | processing | retriable_failure | success | fatal_failure |
              cancelled | dropped | expired
    attempts  runs that failed; crashes: runs whose process died
    reason    of the last failure
    progress  the function's last progress note
    tries     the last attempts after which it came back: when, how and why; only where they were asked for, as are
    worker    the one that runs it now, and `heard_at`, when that was last heard of; where the gateway can tell
    created_by  who submitted it, as that said; known until it has ended
    """

    id: str
    state: str
    kind: Kind
    attempts: int = 0
    crashes: int = 0
    created_at: float = 0.0
    due_at: float = 0.0
    ended_at: float = 0.0
    reason: str = ""
    progress: str = ""
    tries: tuple[Try, ...] = ()
    worker: str = ""
    heard_at: float = 0.0
    created_by: str = ""

    @property
    def function(self) -> str:
        """The name of its function."""
        return self.kind.function

    @property
    def ended(self) -> bool:
        """Whether it is over, well or not."""
        return self.state in ENDED
