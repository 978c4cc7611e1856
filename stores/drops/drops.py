"""The drops' protocol: positions of a stream that were passed without being run, with the gate, person or cause that
decided it.

A tailer writes here before its frontier passes such positions, so that nothing is dropped without a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.drop import Cause, Drop, DropRow

#: Ranges kept for each partition, not counting ranges that may still grow and one for each gate.
MOST = 1000


class Drops(Protocol):
    """Dropped positions of sources, as ranges. A change is durable when its method returns.

    Invariant: ranges of one ⟨source, partition, cause, version⟩ neither overlap nor touch.
    """

    async def add(self, source: str, partition: str, drops: Sequence[Drop], below: int) -> None:
        """Notes ranges of which every position was dropped; harmless when repeated. A range that touches a known one of
        the same cause and version is merged with it. `below`: no position below it will be noted any more, so ranges
        there may be merged across gaps, the smallest first, when a partition has more than MOST ranges."""

    async def within(self, source: str, partition: str, first: int, last: int) -> list[Drop]:
        """The ranges that have positions from `first` to `last`, whole, by position."""

    async def list(self, source: str, limit: int, skip: int = 0) -> list[DropRow]:
        """Ranges of one source or of all sources (""), by source, partition and position."""


__all__ = ["MOST", "Cause", "Drop", "DropRow", "Drops"]
