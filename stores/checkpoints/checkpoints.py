"""The checkpoints' protocol: how far each stream is done. Epochs come from the ownership store and fence the writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Mark(NamedTuple):
    """How far a partition is.

    position    everything below it is settled
    ahead       what is settled above it, as `frontier.py` encodes it
    handed_out  the end of what was ever handed out: at a takeover, what is unsettled below it is suspect (L14)
    book        how it all ended, as `audit.py` encodes it; it stays with `position` and `ahead`
    """

    position: int
    ahead: bytes = b""
    handed_out: int = 0
    book: bytes = b""


class Checkpoints(Protocol):
    """Durable when a method returns."""

    async def open(self, source: str, epoch: int) -> dict[str, Mark]:
        """Notes the epoch, so that writes of older ones are refused from now on, then reads the marks by partition
        (L11). Harmless when repeated; raises StaleFence when a newer epoch was noted."""

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        """Moves marks forward, by partition. A position that would go back is left as it is, with its `ahead`; so is
        a `handed_out` that would (L13). Raises StaleFence when the epoch is not the one noted."""

    async def load(self, source: str) -> dict[str, Mark]:
        """The marks, without taking the source."""
