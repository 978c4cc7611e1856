"""The spool's protocol: a gateway's own bounded log of submissions that its store could not take yet.

A spool lasts as long as the disk under it. Times are wall clock seconds. Every method that changes something is durable
when it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...model.function_spec import FunctionSpec
from ...model.workload import Kind
from ..queue.items import ItemContent, Reschedule
from ..queue.queue import NewItem, Submitted

#: The name of its file in a data directory.
FILE = "spool.db"
#: The beginning of a spooled workload's id; its id in the queue is known once it is there.
PREFIX = "spool-"


class SpooledItem(NamedTuple):
    """A spooled workload that is to go to the queue. Its item has a dedupe key, by which the queue knows it again.
    `moved`: it was rescheduled here, so the queue, where it has it already, has the former times; `cancelled`: it was
    cancelled here, and the queue's copy is to be cancelled."""

    id: str
    item: NewItem
    moved: bool = False
    cancelled: bool = False


class SpooledTotals(NamedTuple):
    """Totals of the spool, without workloads that the queue refused: workloads, and payload bytes."""

    items: int
    size: int


@dataclass(frozen=True, slots=True)
class Spooled:
    """A workload by its id in the spool, as far as it is known.

    became     its id in the queue, once it is there; empty: it is not
    reason     why it ended without getting there (the queue refused it); empty: it did not
    cancelled  it was cancelled here: while it waits it is to be cancelled in the queue, once that has it
    """

    id: str
    kind: Kind
    created_at: float
    due: float
    became: str = ""
    reason: str = ""
    cancelled: bool = False


class SpooledSubmissions(Protocol):
    """Submissions in the order in which they came. Invariant: each is here until the queue is known to have it."""

    async def add(self, items: Sequence[NewItem], shared: bool = False) -> list[Submitted]:
        """Stores all items or none; each has a dedupe key. An item whose ⟨function, dedupe key⟩ is spooled already is a
        duplicate of that. `shared`: its caller has seen items of tenants, as the spool itself may have: from then on
        the room is theirs together. Raises Overloaded beyond the spool's bounds, and StoreFull."""

    async def next(self, items: int, size: int) -> list[SpooledItem]:
        """The first items, at most so many and (beside the first) so many payload bytes."""

    async def became(self, ids: Sequence[str], queue_ids: Sequence[str]) -> None:
        """Notes that the queue has these items, under `queue_ids`. Ids that are not in the spool any more are passed
        over."""

    async def refuse(self, id: str, reason: str) -> None:
        """Notes that the queue will never take an item. It is kept with the reason, apart from the waiting ones; an
        item that was cancelled has ended so."""

    async def cancel(self, ids: Sequence[str]) -> list[bool]:
        """Marks the items that still wait; returns for each id whether it does. They go to the queue all the same: it
        may have them already, though its answer was lost."""

    async def find(self, ids: Sequence[str]) -> list[Spooled | None]:
        """The workload of each id; None for unknown and forgotten ones."""


class SpooledContents(Protocol):
    """Single workloads that wait in a spool, looked at and changed."""

    async def reschedule(self, changes: Sequence[Reschedule]) -> list[str]:
        """Changes times and priorities as `QueueItems.reschedule` does. The answer is `unknown` for a workload that
        does not wait here (any more), and `ended` for one that is cancelled."""

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        """The content of a waiting workload; None where it does not wait here."""


class SpoolCounts(Protocol):
    """Totals of a spool, for alerts and metrics."""

    async def held(self) -> SpooledTotals:
        """Totals of the spool now."""

    async def refused(self) -> int:
        """Number of kept workloads that the queue refused."""

    async def oldest(self) -> float:
        """The time when the first waiting workload was spooled; 0: none waits."""


class RememberedFunctions(Protocol):
    """The function registry as it was last, for a gateway that starts while its store is away."""

    async def remember(self, functions: Sequence[FunctionSpec]) -> None:
        """Keeps the registry, in place of the kept one."""

    async def functions(self) -> list[FunctionSpec]:
        """The functions of the kept registry."""


class Spool(SpooledSubmissions, SpooledContents, SpoolCounts, RememberedFunctions, Protocol):
    """A spool as an engine keeps it: all four protocols. A part that needs one of them asks for that one only."""
