"""The local order: highest priority first, then arrival (R59)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ...sdk.model.priority import Priority

T = TypeVar("T")

LEVELS = len(Priority)


class Waiting(Generic[T]):
    """Items that wait for a slot. Invariant: `lanes[p]` holds those of priority p in order of arrival."""

    __slots__ = ("lanes",)

    def __init__(self) -> None:
        self.lanes: tuple[deque[T], ...] = tuple(deque() for _ in range(LEVELS))

    def __len__(self) -> int:
        return sum(map(len, self.lanes))

    def push(self, priority: int, item: T) -> None:
        """One more; a priority beyond the known levels is the lowest."""
        self.lanes[min(priority, LEVELS - 1)].append(item)

    def extend(self, priority: int, items: Iterable[T]) -> None:
        """Several of one priority, in order."""
        self.lanes[min(priority, LEVELS - 1)].extend(items)

    def pop(self) -> T | None:
        """The next to start; None: nothing waits."""
        for lane in self.lanes:
            if lane:
                return lane.popleft()
        return None

    def take(self, wanted: Callable[[T], bool]) -> list[T]:
        """Removes and returns those that `wanted` names; the others keep their order."""
        taken: list[T] = []
        for lane in self.lanes:
            kept = deque[T]()
            for item in lane:
                (taken if wanted(item) else kept).append(item)
            if len(kept) != len(lane):
                lane.clear()
                lane.extend(kept)
        return taken
