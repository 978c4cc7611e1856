"""The port of a tailer to the delay service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.parked import Parked


class Parking(Protocol):
    """A place where stream items that failed for now wait until they are due."""

    async def park(self, items: Sequence[Parked]) -> None:
        """Durable when it returns; safe to repeat. Raises Unavailable."""
