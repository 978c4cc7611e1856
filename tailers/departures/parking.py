"""The port of a tailer to the delay service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from ...sdk.model.ledger import LedgerEntry
from ...sdk.model.parked import Parked


class Parking(Protocol):
    """A place where stream items that failed for now wait until they are due."""

    async def park(self, items: Sequence[Parked]) -> None:
        """Durable when it returns; safe to repeat. Raises Unavailable."""


def as_row_says(parked: Parked, row: LedgerEntry | None) -> Parked:
    """What is appended to the delay service for a row of the ledger; None: it has none."""
    if row is None:
        return parked
    return replace(
        parked,
        n=row.n,
        due=row.due,
        attempt=row.attempts + 1,
        crashes=row.crashes,
        throttles=row.throttles,
        fence=max(parked.fence, row.fence),
    )
