"""The line before the one writer of a file, and what is written next: light writes together, a heavy one by itself.

A heavy write (a large submission, a sweep) takes milliseconds. In one transaction with light ones it would hold up
their answers, so those that wait go before it, and none that comes meanwhile waits for more than one of them. A heavy
one that waited while light ones were written is next, so neither kind starves.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Write = TypeVar("Write")


class WriteLine(Generic[Write]):
    """Writes that wait. `len` of it is how many wait."""

    def __init__(self) -> None:
        self._light: deque[Write] = deque()
        self._heavy: deque[Write] = deque()
        self._heavy_is_next = False  # one waited while light ones were written
        self._heavy_was_last = False

    def __len__(self) -> int:
        return len(self._light) + len(self._heavy)

    def add(self, write: Write, *, heavy: bool) -> None:
        """One more that waits."""
        (self._heavy if heavy else self._light).append(write)

    def take(self, most: int) -> list[Write]:
        """What goes into the next transaction: at most so many light ones, or a heavy one; empty: nothing waits."""
        self._heavy_was_last = bool(self._heavy) and (self._heavy_is_next or not self._light)
        if self._heavy_was_last:
            self._heavy_is_next = False
            return [self._heavy.popleft()]
        self._heavy_is_next = bool(self._heavy)
        return [self._light.popleft() for _ in range(min(most, len(self._light)))]

    @property
    def first(self) -> Write | None:
        """The light one that has waited longest."""
        return self._light[0] if self._light else None

    @property
    def gives_way(self) -> bool:
        """Whether what was taken last is to be done with as soon as may be: it is heavy, and light ones wait."""
        return self._heavy_was_last and bool(self._light)
