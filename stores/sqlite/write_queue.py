"""The queue of writes before the single writer of a file, and the next ones: light writes together, a heavy one alone.

A heavy write (a large submission, a sweep) takes milliseconds. In one transaction with light ones it would delay their
answers. So waiting light writes go first, and a light write that comes meanwhile waits for at most one heavy one. A
heavy write that waited while light ones were written is next, so neither kind starves.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Write = TypeVar("Write")


class WriteQueue(Generic[Write]):
    """Writes that wait; `len` is their number."""

    def __init__(self) -> None:
        self._light: deque[Write] = deque()
        self._heavy: deque[Write] = deque()
        self._heavy_is_next = False  # a heavy write waited while light ones were written
        self._heavy_was_last = False

    def __len__(self) -> int:
        return len(self._light) + len(self._heavy)

    def add(self, write: Write, *, heavy: bool) -> None:
        """Adds a write."""
        (self._heavy if heavy else self._light).append(write)

    def take(self, most: int) -> list[Write]:
        """Takes the writes of the next transaction: up to `most` light ones, or one heavy one; empty: none waits."""
        self._heavy_was_last = bool(self._heavy) and (self._heavy_is_next or not self._light)
        if self._heavy_was_last:
            self._heavy_is_next = False
            return [self._heavy.popleft()]
        self._heavy_is_next = bool(self._heavy)
        return [self._light.popleft() for _ in range(min(most, len(self._light)))]

    @property
    def first(self) -> Write | None:
        """The light write that has waited longest."""
        return self._light[0] if self._light else None

    @property
    def gives_way(self) -> bool:
        """Whether the last transaction should be short: it is a heavy write, and light ones wait."""
        return self._heavy_was_last and bool(self._light)
