"""The drops' protocol: which positions of a stream were passed without being run, by whose word.

A tailer writes here before its frontier passes such positions, so that nothing is dropped without a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.drop import Cause, Drop, DropRow

#: Ranges kept for each partition, not counting what may still grow and one for each gate.
MOST = 1000


class Drops(Protocol):
    """Durable when a method returns.

    Invariant: ranges of one ⟨source, partition, cause, version⟩ neither overlap nor touch.
    """

    async def add(self, source: str, partition: str, drops: Sequence[Drop], below: int) -> None:
        """Notes ranges of which every position was passed. Repeating it changes nothing. Those that touch known ones
        of the same cause and version are joined to them. `below`: nothing below it will be noted any more, so that
        what lies there may be joined across gaps, the smallest first, when a partition has more than MOST ranges."""

    async def within(self, source: str, partition: str, first: int, last: int) -> list[Drop]:
        """The ranges that have positions from `first` to `last`, whole, by position."""

    async def list(self, source: str, limit: int, skip: int = 0) -> list[DropRow]:
        """Ranges of one source or of all (""), by source, partition and position."""


__all__ = ["MOST", "Cause", "Drop", "DropRow", "Drops"]
