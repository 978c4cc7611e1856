"""Lanes: the bounded waiting room of one ⟨function, priority⟩.

An item is one tuple, made and undone by `zip`; a lane is a deque of them. Nothing here looks at one item alone unless
somebody cancels, revokes, gates or expires it, which is rare and may scan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ...model.workload import Extra, Kind

#: (session, ref in that session, id, payload, kind, attempt, fence, extra). The session is opaque to the rules.
Item = tuple[Any, int, str, bytes, Kind, int, int, Extra | None]

SESSION: Final = 0
REF: Final = 1
ID: Final = 2
PAYLOAD: Final = 3
KIND: Final = 4
ATTEMPT: Final = 5
EXTRA: Final = 7


class Lane:
    """The items of one ⟨function, priority⟩ that wait. Invariants: first in, first out, but what was put back is before
    all others; never more than `bound` items after `overflow` was asked; `dated` is true whenever an item with an
    expiry waits here (it may stay true a while longer)."""

    __slots__ = ("bound", "dated", "items")

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.items: deque[Item] = deque()
        self.dated = False

    def __len__(self) -> int:
        return len(self.items)

    def overflow(self) -> list[Item]:
        """What came last and does not fit."""
        items = self.items
        return [items.pop() for _ in range(len(items) - self.bound)]

    def take(self, count: int) -> list[Item]:
        """The first `count` items, or all there are."""
        items = self.items
        if count >= len(items):
            taken = list(items)
            items.clear()
            self.dated = False
            return taken
        pop = items.popleft
        return [pop() for _ in range(count)]

    def put_back(self, items: list[Item]) -> None:
        """Items that had their turn, and did not leave or were lost: first again, in their order."""
        self.items.extendleft(reversed(items))
        self.dated = self.dated or any(item[EXTRA] is not None for item in items)

    def remove(self, gone: Callable[[Item], bool]) -> list[Item]:
        """Takes out every item that is `gone`; the others keep their order."""
        taken = [item for item in self.items if gone(item)]
        if taken:
            kept = [item for item in self.items if not gone(item)]
            self.items.clear()  # never another deque: who fills the lane knows this one
            self.items.extend(kept)
        return taken


def expired(item: Item, wall: float) -> bool:
    """Whether an item's time to start has passed. `wall` is wall clock seconds."""
    extra = item[EXTRA]
    return extra is not None and 0 < extra.expires_at <= wall
