"""The checkpoints' protocol: the position up to which each stream is done. Writes are fenced by epochs, the generations
of owners, which the ownership store gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ...model.audit import Ending

#: Ranges of items that did not succeed which are kept one by one for each partition; the newest half always.
MOST = 5000


class Mark(NamedTuple):
    """The progress of a partition.

    position    everything below it is settled
    ahead       positions above it that are settled, as `frontier.py` encodes them
    handed_out  the end of all that was ever handed out: at a takeover, unsettled positions below it are suspect (L14)
    book        how every position ended, as `audit.py` encodes it; it stays with `position` and `ahead`
    endings     in a write: ranges below `position` that did not succeed and were not written yet, rising
    """

    position: int
    ahead: bytes = b""
    handed_out: int = 0
    book: bytes = b""
    endings: tuple[Ending, ...] = ()


class Checkpoints(Protocol):
    """Checkpoints of sources, by partition. A change is durable when its method returns."""

    async def open(self, source: str, epoch: int) -> dict[str, Mark]:
        """Notes the epoch, so that writes of older ones are refused from now on, then reads the marks by partition
        (L11). Harmless when repeated; raises StaleFence when a newer epoch was noted."""

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        """Moves marks forward, by partition, and keeps their endings in the same write; endings kept before are
        ignored. A position that would go back is left as it is, with its `ahead`; so is such a `handed_out` (L13).
        Raises StaleFence when the epoch is not the one noted."""

    async def load(self, source: str) -> dict[str, Mark]:
        """The marks by partition, without endings. The epoch is not touched."""

    async def endings(self, source: str, partition: str, first: int, end: int) -> list[Ending]:
        """The kept ranges that have positions from `first` to before `end`, whole, rising. Beyond MOST ranges of a
        partition, neighbours in the older half are merged, the nearest first; counts stay exact."""

    async def forget(self, source: str) -> None:
        """Forgets the marks and endings of a source that nobody will read on. Its epoch stays, so that late writes of
        older ones are refused as before."""


__all__ = ["MOST", "Checkpoints", "Ending", "Mark"]
