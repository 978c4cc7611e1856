"""A segment: a run of a source's positions, and the bytes of one object in which their items lie.

Objects have no positions of their own, so a source that reads them gives them some; this is the note of which. It is
durable before an item of it is handed out, so that a position means the same bytes for ever.
"""

from __future__ import annotations

from typing import NamedTuple


class Segment(NamedTuple):
    """A segment: `items` positions from `first` on. Invariant: segments of a source follow each other without a gap.

    ordinal  the object's position in the inventory
    version  what pins the version of the object that was read
    offset   where in its content (decompressed) the first byte is
    length   bytes of content
    refused  why its one item cannot be handed out as it is; empty: it can
    absent   its one position holds nothing: the object was empty, or taken away
    end      nothing of the object comes after it
    """

    first: int
    items: int
    ordinal: int
    version: str = ""
    offset: int = 0
    length: int = 0
    refused: str = ""
    absent: bool = False
    end: bool = False

    @property
    def after(self) -> int:
        """The first position that is not in it."""
        return self.first + self.items
