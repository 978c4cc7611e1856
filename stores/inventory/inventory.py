"""The inventory's protocol: what a listing source has seen, by name and version, each with a position.

A folder or a bucket has no order of its own, so the order of discovery becomes the stream's positions. Only identities
are kept, never content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class InventoryEntry(NamedTuple):
    """One content of one name. `version` is whatever tells two contents of one name apart: size and mtime, an etag."""

    name: str
    version: str


@dataclass(slots=True)
class Entries:
    """Parallel lists, by rising position."""

    positions: list[int]
    names: list[str]
    versions: list[str]


class Inventory(Protocol):
    """Durable when a method returns."""

    async def offer(self, source: str, entries: Sequence[InventoryEntry]) -> int:
        """Gives each entry not seen before (name and version) the next position; returns how many were new."""

    async def read(self, source: str, position: int, limit: int) -> Entries:
        """Entries from `position` on."""

    async def end(self, source: str) -> int:
        """The position that the next new entry will get."""

    async def forget(self, source: str) -> None:
        """Drops everything about a source."""

    async def floor(self, source: str) -> str:
        """The name up to which everything counts as seen though it is not kept; empty: none."""

    async def raise_floor(self, source: str, overlap: int, below: int) -> str:
        """Keeps the `overlap` greatest names and raises the floor to the next one, never back; what is at or under the
        floor and at a position `below` goes. Returns the floor. For sources whose names rise with time."""
