"""The port for who runs what a queue has: claims for a while, prolonged and ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.claim import Leased, Renewed, ResultSettlement, Settle, State
from ...model.demand import Demand


class QueueLeases(Protocol):
    """Items handed out by priority and then due time, settled one by one."""

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        """Claims due items within `demand` for `seconds`, at most FLIGHT_ITEMS; waits up to `wait` seconds for the
        first one. Within a cell by due time; cells in turns, so that a full one does not starve the others. An item
        with a key is leased only when it is the oldest pending one of its key. None: nothing was due."""

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        """Prolongs the leases of one claim's items that are still out. `phase` is PROCESSING."""

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        """Ends hand-outs of one claim. Returns the ids that were refused because a newer fence exists (nothing about
        them was changed) or because they had ended. Repeating a settlement is harmless."""

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        """The same, of items of jobs that have results: it also answers those that failed by that, as often as it is
        asked."""
