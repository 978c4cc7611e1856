"""The segments' protocol: for positions of a source the object and the bytes in it that they are.

An inventory knows objects, segments know the items in them: a source of objects writes a segment before it hands out an
item of it, and finds every position again by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.segment import Segment


class Segments(Protocol):
    """The segments of sources. A change is durable when its method returns."""

    async def append(self, source: str, segments: Sequence[Segment]) -> bool:
        """Adds segments that follow each other; all, or none when the first does not begin where the source's last one
        ended, since another process added some: then False."""

    async def read(self, source: str, position: int, limit: int) -> list[Segment]:
        """Up to `limit` segments that hold positions from `position` on, rising."""

    async def last(self, source: str) -> Segment | None:
        """The segment with the highest positions; None: there is none."""

    async def trim(self, source: str, below: int) -> None:
        """Forgets segments whose positions are all below `below`; never the last one."""
