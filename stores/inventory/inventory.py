"""The inventory's protocol: objects that a listing source has seen, by name and version, each with a position.

A folder or a bucket has no order of its own, so the order of discovery becomes the stream's positions. Only identities
are kept, never content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class InventoryEntry(NamedTuple):
    """One content of one name. `version` tells two contents of one name apart: size and mtime, or an etag."""

    name: str
    version: str


@dataclass(slots=True)
class Entries:
    """Entries as parallel lists, by rising position."""

    positions: list[int]
    names: list[str]
    versions: list[str]


class Inventory(Protocol):
    """The inventories of sources. A change is durable when its method returns."""

    async def offer(self, source: str, entries: Sequence[InventoryEntry]) -> int:
        """Gives each entry that was not seen before (name and version) the next position; returns how many were new."""

    async def read(self, source: str, position: int, limit: int) -> Entries:
        """Up to `limit` entries from `position` on."""

    async def end(self, source: str) -> int:
        """The position that the next new entry will get."""

    async def forget(self, source: str) -> None:
        """Removes everything about a source."""

    async def floor(self, source: str) -> str:
        """The floor: a name up to which every entry counts as seen though it is not kept; empty: none."""

    async def raise_floor(self, source: str, overlap: int, below: int) -> str:
        """Raises the floor to the greatest name below the `overlap` greatest ones, never back, and removes the entries
        at or under it whose position is below `below`. Returns the floor. For sources whose names rise with time."""
