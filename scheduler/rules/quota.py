"""Quota: how many items of a function run at once (each function has its own).

Counted only for functions that have such a limit; the others pay nothing.
"""

from __future__ import annotations


class Concurrency:
    """The runs of one function. Invariant: `running` ≤ `limit`, unless the limit was lowered below what already ran, or
    runs went on that had waited for other work: they do not count while they wait."""

    __slots__ = ("limit", "running")

    def __init__(self, limit: int, running: int = 0) -> None:
        self.limit = limit
        self.running = running

    @property
    def room(self) -> int:
        """How many more may start."""
        return max(0, self.limit - self.running)

    def start(self, count: int) -> None:
        self.running += count

    def end(self, count: int) -> None:
        assert count <= self.running
        self.running -= count
