"""Admission control: bounds the workloads and bytes that are being stored at once. Requests beyond it are refused at
once.

Early refusals keep answers quick for admitted requests, and memory bounded (ATF's submitter does the same).
"""

from __future__ import annotations

from ..model.errors import Overloaded

#: Seconds that a refused client is told to wait: while the pace is unknown, at least, and at most.
USUAL_WAIT = 0.2
SHORTEST_WAIT = 0.05
LONGEST_WAIT = 5.0


class Admission:
    """The submissions that are being stored. A request alone is admitted whatever its size, else it never could be."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._items = 0
        self._bytes = 0
        self._pace = 0.0  # workloads stored per second, smoothed

    @property
    def inside(self) -> tuple[int, int]:
        """Number of workloads and bytes that are being stored."""
        return self._items, self._bytes

    def enter(self, items: int, size: int) -> None:
        """Admits a request. Raises Overloaded, with the seconds to wait."""
        if self._items and (self._items + items > self._max_items or self._bytes + size > self._max_bytes):
            raise Overloaded(
                f"the gateway is storing {self._items} workloads ({self._bytes} bytes) and takes no more just now: "
                "try again a little later, or submit more slowly",
                self._wait(),
            )
        self._items += items
        self._bytes += size

    def leave(self, items: int, size: int, took: float) -> None:
        """Notes that an admitted request was answered, `took` seconds later."""
        pace = self._items / max(took, 1e-4)
        self._pace = pace if not self._pace else 0.9 * self._pace + 0.1 * pace
        self._items -= items
        self._bytes -= size

    def _wait(self) -> float:
        """Estimated seconds until half of the workloads inside are stored."""
        wait = self._items / 2 / self._pace if self._pace else USUAL_WAIT
        return min(LONGEST_WAIT, max(SHORTEST_WAIT, wait))
