"""The port for running a queue's items: leases are granted, prolonged and ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.claim import Leased, Renewed, ResultSettlement, Settle, State
from ...model.demand import Demand


class QueueLeases(Protocol):
    """Items handed out by priority and then due time, and settled one by one."""

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        """Claims due items within `demand` for `seconds`, at most FLIGHT_ITEMS; waits up to `wait` seconds for the
        first one. Returns None if nothing was due. Items of a cell go by due time; cells take turns, so that a full one
        does not starve the others. An item with a key is leased only when it is the oldest pending one of its key."""

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        """Prolongs the leases of one claim's items that are still leased. `phase` is PROCESSING."""

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        """Ends the leases of items of one claim. Returns the ids that were refused, because a newer fence exists or
        because they had ended; refused items are unchanged. A repeated settlement is harmless."""

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        """Settles like `settle`, with items of jobs that have results. Also returns the items that failed because of
        their results, each time that it is called."""
