"""The checkpoints' protocol: how far each stream is done. Epochs come from the ownership store and fence the writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ...model.audit import Ending

#: Ranges of what did not succeed that are kept one by one for each partition; the newest half always.
MOST = 5000


class Mark(NamedTuple):
    """The progress of a partition.

    position    everything below it is settled
    ahead       what is settled above it, as `frontier.py` encodes it
    handed_out  the end of what was ever handed out: at a takeover, what is unsettled below it is suspect (L14)
    book        how it all ended, as `audit.py` encodes it; it stays with `position` and `ahead`
    endings     of a write: what below `position` did not succeed and was not written yet, rising
    """

    position: int
    ahead: bytes = b""
    handed_out: int = 0
    book: bytes = b""
    endings: tuple[Ending, ...] = ()


class Checkpoints(Protocol):
    """Durable when a method returns."""

    async def open(self, source: str, epoch: int) -> dict[str, Mark]:
        """Notes the epoch, so that writes of older ones are refused from now on, then reads the marks by partition
        (L11). Harmless when repeated; raises StaleFence when a newer epoch was noted."""

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        """Moves marks forward, by partition, and keeps their endings in the same write; those kept before are ignored.
        A position that would go back is left as it is, with its `ahead`; so is a `handed_out` that would (L13). Raises
        StaleFence when the epoch is not the one noted."""

    async def load(self, source: str) -> dict[str, Mark]:
        """The marks, without taking the source and without endings."""

    async def endings(self, source: str, partition: str, first: int, end: int) -> list[Ending]:
        """What was kept that has positions from `first` to before `end`, whole, rising. Beyond MOST ranges of a
        partition neighbours of the older half are one, the nearest first; counts stay exact."""

    async def forget(self, source: str) -> None:
        """Forgets the marks and endings of a source that nobody will read on. Its epoch stays, so that late writes of
        older ones are refused as before."""


__all__ = ["MOST", "Checkpoints", "Ending", "Mark"]
