"""Admission: how much may be in the middle of being stored, bounded in workloads and in bytes. Beyond it, refuse at
once.

Refusing early keeps answers quick for those who are let in, and memory bounded (ATF's submitter does the same).
"""

from __future__ import annotations

from ..model.errors import Overloaded

#: What a refused client is told to wait when nothing is known of the pace, and the bounds of what it is told (s).
USUAL_WAIT = 0.2
SHORTEST_WAIT = 0.05
LONGEST_WAIT = 5.0


class Admission:
    """The submissions that are inside now. A lone request is let in whatever its size, else it could never be."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._items = 0
        self._bytes = 0
        self._pace = 0.0  # workloads stored per second, smoothed

    @property
    def inside(self) -> tuple[int, int]:
        """Workloads and bytes being stored."""
        return self._items, self._bytes

    def enter(self, items: int, size: int) -> None:
        """Lets a request in. Raises Overloaded."""
        if self._items and (self._items + items > self._max_items or self._bytes + size > self._max_bytes):
            raise Overloaded(
                f"the gateway is storing {self._items} workloads ({self._bytes} bytes) and takes no more just now: "
                "try again a little later, or submit more slowly",
                self._wait(),
            )
        self._items += items
        self._bytes += size

    def leave(self, items: int, size: int, took: float) -> None:
        """A request that was let in has been answered, `took` seconds later."""
        pace = self._items / max(took, 1e-4)
        self._pace = pace if not self._pace else 0.9 * self._pace + 0.1 * pace
        self._items -= items
        self._bytes -= size

    def _wait(self) -> float:
        """About how long until half of what is inside is stored."""
        wait = self._items / 2 / self._pace if self._pace else USUAL_WAIT
        return min(LONGEST_WAIT, max(SHORTEST_WAIT, wait))
