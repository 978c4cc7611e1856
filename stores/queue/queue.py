"""The queue's protocol: a distributed priority queue in the manner of FOQS (Meta) and ATF's task store (Dropbox).

Times are wall clock seconds of the store's own clock unless said otherwise. Every method is durable when it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...sdk.model.claim import Leased, Renewed, Settle, State
from ...sdk.model.demand import Demand
from ...sdk.model.search import Search
from ...sdk.model.tries import Try
from ...sdk.model.workload import Headers, Kind

#: Characters of a reason and of a progress note that an engine keeps.
REASON, PROGRESS = 4096, 1024


@dataclass(slots=True)
class NewItem:
    """A workload to be stored. `due` 0 means now; `expires_at` 0 means never; an empty dedupe_key or key means none."""

    kind: Kind
    payload: bytes
    due: float = 0.0
    key: str = ""
    headers: Headers = ()
    dedupe_key: str = ""
    expires_at: float = 0.0


class Submitted(NamedTuple):
    """The id a new item got, or that of the first one with its dedupe key."""

    id: str
    duplicate: bool


@dataclass(slots=True)
class Status:
    """What the store knows of one item. `due`: its next trigger (lifecycle.py), 0: it has ended; `ended_at` 0: it has
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
    """What a search found, and where it goes on: `after` is the id of the last one that was looked at; empty: nothing
    is left. A page may hold fewer than its limit, or none, and not be the last one: a look is bounded too."""

    statuses: list[Status]
    after: str = ""


class Tally(NamedTuple):
    """`taken` is how many items there were when the store was opened and how many were submitted since, `forgotten` how
    many of them the retention removed; `states` counts the rows by the state's name. What was taken and not forgotten
    is to be in one state."""

    taken: int
    forgotten: int
    states: dict[str, int]


class Ageing(NamedTuple):
    """How old the work of one function at one priority is. `waited`: seconds since its oldest item that could be leased
    now was due, by the store's clock; 0: none is due. `attempts`: the most that a live item of it has spent."""

    function: str
    priority: int
    waited: float
    attempts: int


class Queue(Protocol):
    """Items that wait for their time, leased by priority and then due time, settled one by one."""

    async def submit(self, items: Sequence[NewItem]) -> list[Submitted]:
        """Stores all items or none. Raises Overloaded at the configured bound, StoreFull, InvalidRequest."""

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        """Claims due items within `demand` for `seconds`, at most FLIGHT_ITEMS; waits up to `wait` seconds for the
        first one. Within a cell by due time; cells in turns, so that a full one does not starve the others. An item
        with a key is leased only when it is the oldest pending one of its key. None: nothing was due."""

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        """Prolongs the leases of one claim's items that are still out. `phase` is PROCESSING."""

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        """Ends hand-outs of one claim. Returns the ids that were refused because a newer fence exists (nothing about
        them was changed) or because they had ended. Repeating a settlement is harmless."""

    async def status(self, ids: Sequence[str]) -> list[Status | None]:
        """What is known of each id; None for unknown or forgotten ones."""

    async def find(self, search: Search) -> Page:
        """A page of the workloads that fit, the newest first. Writes nothing, holds up nobody, and looks at a bounded
        number of rows along an index; an engine without one (Redis) looks at all of them, in bounded steps."""

    async def tries(self, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
        """How the attempts went after which each item came back, the last ones; those without any are left out."""

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        """Of each id: `cancelled` (had not started), `requested` (a lease holder will be told), `ended`, `unknown`."""

    async def tally(self) -> Tally:
        """What an audit needs, counted row by row: takes long with many items, but holds up nobody."""

    async def counts(self) -> dict[str, int]:
        """How many items are in each state, by the state's name."""

    async def due(self, most: int) -> dict[str, int]:
        """How many items could be leased now, by function, counting at most `most` of one function, priority and
        collection; functions without any are left out."""

    async def ageing(self) -> list[Ageing]:
        """The oldest due item and the highest attempt of each function and priority, in no order; those without either
        are left out. Writes nothing, and looks at two ends of an index for each lane, however much waits. What is out
        is not due; an item that came back as lost is due as long as the first of its lane then was."""


__all__ = ["Ageing", "Leased", "NewItem", "Page", "Queue", "Renewed", "Settle", "State", "Status", "Submitted", "Tally"]
