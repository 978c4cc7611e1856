"""The segments' protocol: which positions of a source are which bytes of which object.

What an inventory is for objects, this is for what lies in them: a source of objects writes a segment before it hands
out an item of it, and finds every position again by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.segment import Segment


class Segments(Protocol):
    """Durable when a method returns."""

    async def append(self, source: str, segments: Sequence[Segment]) -> bool:
        """Adds segments that follow each other; all or, when the first does not begin where the source's last one
        ended (somebody else added some), none: then False."""

    async def read(self, source: str, position: int, limit: int) -> list[Segment]:
        """Segments that hold positions from `position` on, rising."""

    async def last(self, source: str) -> Segment | None:
        """The one with the highest positions."""

    async def trim(self, source: str, below: int) -> None:
        """Forgets segments whose positions are all below; never the last one."""
