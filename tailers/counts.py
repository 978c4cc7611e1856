"""Counts of what happened to the items of a tailer."""

from __future__ import annotations

from dataclasses import dataclass, field

from .ageing import RetryAgeing


@dataclass(slots=True)
class TailerCounts:
    """Numbers of items since the tailer started."""

    read: int = 0
    settled: int = 0
    parked: int = 0
    dead: int = 0
    dropped: int = 0  # of the settled items, by a gate
    lost: int = 0
    unreadable: int = 0  # of the items read: their priority or their deadline cannot be read
    completed: int = 0  # items with progress: done, parked, dead, or an attempt that counted
    stale_writes: int = 0  # refused by a store because another owner had taken the source
    ageing: RetryAgeing = field(default_factory=RetryAgeing)  # of failed items that are read again

    def refused(self) -> None:
        """Counts a stale write that a store refused."""
        self.stale_writes += 1
