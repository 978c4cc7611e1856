"""The port for lookups in a queue: status, search, history of attempts, and cancellation of single workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...model.claim import State
from ...model.search import Search
from ...model.tries import Try
from ...model.workload import Headers, Kind


@dataclass(slots=True)
class Status:
    """The status of one item in the store. `due`: its next trigger (lifecycle.py), 0: it has ended; `ended_at` 0: it
    has not ended."""

    id: str
    state: State
    kind: Kind
    attempts: int
    crashes: int
    created_at: float
    due: float
    ended_at: float
    reason: str
    progress: str


@dataclass(slots=True)
class Page:
    """One page of a search. `after`: the id of the last item looked at, where the next page goes on; empty: nothing is
    left. A page may hold fewer items than its limit, or none, without being the last one, because each look is
    bounded."""

    statuses: list[Status]
    after: str = ""


class QueueLookup(Protocol):
    """Workloads by their ids, and searches for them."""

    async def status(self, ids: Sequence[str]) -> list[Status | None]:
        """Returns the status of each id; None for unknown or forgotten ones."""

    async def find(self, search: Search) -> Page:
        """Returns a page of the workloads that match, the newest first. Writes nothing, delays no other call, and reads
        a bounded number of rows along an index. An engine without such an index (Redis) scans all workloads, in bounded
        steps."""

    async def tries(self, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
        """Returns the last attempts after which each item came back, and how each ended; items without any are left
        out."""

    async def headers(self, ids: Sequence[str]) -> dict[str, Headers]:
        """Returns the headers of those items that are live and have some."""

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        """Cancels items. Answers each id: `cancelled` (had not started), `requested` (the lease holder will be told),
        `ended` or `unknown`."""
