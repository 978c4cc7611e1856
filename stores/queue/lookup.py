"""The port for single workloads of a queue: how each is, which ones fit, and that some are not wanted any more."""

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
    """One item, as the store knows it. `due`: its next trigger (lifecycle.py), 0: it has ended; `ended_at` 0: it has
    not."""

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
    """The items that a search found, and where it goes on: `after` is the id of the last one that was looked at; empty:
    nothing is left. A page may hold fewer than its limit, or none, and not be the last one: a look is bounded too."""

    statuses: list[Status]
    after: str = ""


class QueueLookup(Protocol):
    """Workloads by their ids, and searches for them."""

    async def status(self, ids: Sequence[str]) -> list[Status | None]:
        """What is known of each id; None for unknown or forgotten ones."""

    async def find(self, search: Search) -> Page:
        """A page of the workloads that fit, the newest first. Writes nothing, holds up nobody, and looks at a bounded
        number of rows along an index; an engine without one (Redis) looks at all of them, in bounded steps."""

    async def tries(self, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
        """How the attempts went after which each item came back, the last ones; those without any are left out."""

    async def headers(self, ids: Sequence[str]) -> dict[str, Headers]:
        """The headers of the live items of these that have any."""

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        """Of each id: `cancelled` (had not started), `requested` (a lease holder will be told), `ended`, `unknown`."""
