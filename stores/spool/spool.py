"""The spool's protocol: a gateway's own bounded log of submissions that its store could not take yet.

What is in it lasts as long as the disk under it. Times are wall clock seconds. Every method that changes something is
durable when it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...model.function_spec import FunctionSpec
from ...model.workload import Kind
from ..queue.items import ItemContent, Reschedule
from ..queue.queue import NewItem, Submitted

#: What the id of a spooled workload begins with; what the queue calls it is known once it is there.
PREFIX = "spool-"


class SpooledItem(NamedTuple):
    """A spooled workload whose turn it is. Its item has a dedupe key, by which the queue knows it again. `moved`: it
    was rescheduled here, so that the queue, where it has it already, has it as it was; `cancelled`: likewise, and the
    queue's copy is to be cancelled."""

    id: str
    item: NewItem
    moved: bool = False
    cancelled: bool = False


class SpooledTotals(NamedTuple):
    """Totals of what is spooled, not counting what was refused: workloads, and payload bytes."""

    items: int
    size: int


@dataclass(frozen=True, slots=True)
class Spooled:
    """One id of the spool, as far as it is known.

    became   its id in the queue, once it is there; empty: it is not
    reason   why it ended without getting there (the queue refused it); empty: it did not
    cancelled  somebody asked for its end here: while it waits it is to be cancelled in the queue, once that has it
    """

    id: str
    kind: Kind
    created_at: float
    due: float
    became: str = ""
    reason: str = ""
    cancelled: bool = False


class SpoolLine(Protocol):
    """Submissions in the order in which they came. Invariant: each is in it until the queue is known to have it."""

    async def add(self, items: Sequence[NewItem]) -> list[Submitted]:
        """Stores all items or none; each has a dedupe key. One whose ⟨function, dedupe key⟩ is spooled already is a
        duplicate of that. Raises Overloaded beyond the spool's bounds, StoreFull."""

    async def next(self, items: int, size: int) -> list[SpooledItem]:
        """The first ones, at most so many and (beside the first) so many payload bytes."""

    async def became(self, ids: Sequence[str], queue_ids: Sequence[str]) -> None:
        """The queue has them, under these ids. Those that are not in the spool any more are passed over."""

    async def refuse(self, id: str, reason: str) -> None:
        """The queue will never take it: it is kept with the reason, out of the others' way; one that is cancelled has
        ended so."""

    async def cancel(self, ids: Sequence[str]) -> list[bool]:
        """Marks those that still wait; of each, whether it does. They go to the queue all the same, which may have them
        already, though its answer was lost."""

    async def find(self, ids: Sequence[str]) -> list[Spooled | None]:
        """What is known of each id; None for unknown and forgotten ones."""


class SpooledContents(Protocol):
    """Single workloads that wait in a spool, looked at and changed."""

    async def reschedule(self, changes: Sequence[Reschedule]) -> list[str]:
        """As `QueueItems.reschedule`; `unknown` where it does not wait here (any more), `ended` where it is
        cancelled."""

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        """What one that waits holds; None where it does not."""


class SpoolCounts(Protocol):
    """Totals of a spool, for alerts and metrics."""

    async def held(self) -> SpooledTotals:
        """How much is spooled now."""

    async def refused(self) -> int:
        """How many are kept that the queue refused."""

    async def oldest(self) -> float:
        """When the first one that waits was spooled; 0: none waits."""


class RememberedFunctions(Protocol):
    """The function registry as it was, for a gateway that starts while its store is away."""

    async def remember(self, functions: Sequence[FunctionSpec]) -> None:
        """Keeps the registry in place of what was kept."""

    async def functions(self) -> list[FunctionSpec]:
        """What was remembered."""


class Spool(SpoolLine, SpooledContents, SpoolCounts, RememberedFunctions, Protocol):
    """A spool as an engine keeps it: all four ports. A part that needs one of them takes that one."""
