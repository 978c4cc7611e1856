"""Back-pressure: whether a tailer may read more, and how much (after uForwarder's inflight limiter).

Three bounds, each for another danger: `items` and `bytes` count what is in memory, from reading until settled (so there
is always room for the outcome of everything that was pushed); `positions` is how far reading may run ahead of the
oldest position that is not settled, which bounds held items and the part that a restart reads again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class ReadRoom(NamedTuple):
    """Room for a read: so many items, of so many bytes together. Zero items: none."""

    items: int
    bytes: int


FULL = ReadRoom(0, 0)


@dataclass(slots=True)
class Window:
    """Limits on items in memory and on reading ahead, and how much of them is used.

    Invariants: `used_items` and `used_bytes` are never negative; they may pass their limits by one read, since a
    source returns at least one item however large.

    Reading resumes only when a sixteenth of `items` (or of `positions`, if that is less) is free, or nothing is in
    memory: many reads of a few items would cost more than the room they use.
    """

    items: int = 8192
    bytes: int = 16 << 20
    positions: int = 100_000
    used_items: int = 0
    used_bytes: int = 0

    def room(self, span: int = 0) -> ReadRoom:
        """The room for a read now, when reading is `span` positions ahead of the oldest unsettled one."""
        items = min(self.items - self.used_items, self.positions - span)
        left = self.bytes - self.used_bytes
        if items <= 0 or left <= 0:
            return FULL
        if items < min(self.items, self.positions) >> 4 and self.used_items:
            return FULL
        return ReadRoom(items, left)

    def take(self, items: int, size: int) -> None:
        """Notes that items were read into memory."""
        self.used_items += items
        self.used_bytes += size

    def give(self, items: int, size: int) -> None:
        """Notes that items were settled, or their payloads released."""
        self.used_items -= items
        self.used_bytes -= size
        assert self.used_items >= 0 and self.used_bytes >= 0, "more was given back than taken"
