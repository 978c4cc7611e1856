"""The local order: highest priority first, then arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from ...model.priority import Priority

T = TypeVar("T")

LEVELS = len(Priority)


class SlotQueue(Generic[T]):
    """Items that wait for a slot. Invariant: `lanes[p]` holds those of priority p in order of arrival."""

    __slots__ = ("lanes",)

    def __init__(self) -> None:
        self.lanes: tuple[deque[T], ...] = tuple(deque() for _ in range(LEVELS))

    def __len__(self) -> int:
        return sum(map(len, self.lanes))

    def push(self, priority: int, item: T) -> None:
        """Adds an item; a priority beyond the known levels is the lowest."""
        self.lanes[min(priority, LEVELS - 1)].append(item)

    def extend(self, priority: int, items: Iterable[T]) -> None:
        """Adds several items of one priority, in order."""
        self.lanes[min(priority, LEVELS - 1)].extend(items)

    def pop(self) -> T | None:
        """Removes and returns the next item to start; None: nothing waits."""
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


def shares(loads: Sequence[int], count: int) -> list[int]:
    """Numbers of items for executors with these loads, out of `count`, least loaded first: the fullest of those that
    get any is as empty as can be. The sum is `count` (with no executors, nothing is placed)."""
    if len(loads) == 1:
        return [count]
    given = [0] * len(loads)
    order = sorted(range(len(loads)), key=loads.__getitem__)
    left = count
    for position, index in enumerate(order):
        # Raise the `position + 1` emptiest to the level of the next one, or share what is left evenly.
        members = position + 1
        level = loads[index]
        following = loads[order[members]] if members < len(order) else None
        room = left if following is None else min(left, (following - level) * members)
        for rank, member in enumerate(order[:members]):
            given[member] += room // members + (rank < room % members)
        left -= room
        if not left:
            break
    return given
