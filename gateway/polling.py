"""Polling for workloads that callers wait for: after 1 ms, then 2, 5, 10, 20, 50 ms, and every 50 ms from then on.

Quick functions answer quickly, slow ones cost little, and all waiters share each read. With more than a thousand
waiters the last pause grows with their number, so that polling never takes more than READS_PER_SECOND. Jobs that are
waited for are looked at all together, in one call.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

from ..model.linger import RESULT_LOOKS

W = TypeVar("W", bound=Hashable)

PAUSES = (0.001, 0.002, 0.005, 0.010, 0.020, 0.050)
READS_PER_SECOND = 20_000


class Polling(Generic[W]):
    """The workloads that are waited for, with the time of the next look at each. Times are monotonic seconds.

    Invariant: every waiter in `_looks` has exactly one live entry in `_heap`; entries of others are passed over.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, W]] = []
        self._looks: dict[W, tuple[int, int]] = {}  # waiter → number of its entry, looks so far
        self._number = 0

    def __len__(self) -> int:
        return len(self._looks)

    def add(self, waiter: W, now: float) -> None:
        """Starts the looks for a waiter."""
        self._plan(waiter, 0, now)

    def remove(self, waiter: W) -> None:
        """Stops the looks for a waiter. Harmless for an unknown one."""
        self._looks.pop(waiter, None)

    def next(self) -> float | None:
        """The time of the next look; None: nobody waits."""
        while self._heap and self._looks.get(self._heap[0][2], (-1, 0))[0] != self._heap[0][1]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float, limit: int) -> list[W]:
        """Takes up to `limit` waiters to look for now, and plans the next look for each."""
        taken: list[W] = []
        while len(taken) < limit:
            due = self.next()
            if due is None or due > now + RESULT_LOOKS.seconds:
                break
            taken.append(heapq.heappop(self._heap)[2])
            self._looks[taken[-1]] = (-1, self._looks[taken[-1]][1])
        for waiter in taken:
            self._plan(waiter, self._looks[waiter][1] + 1, now)
        return taken

    def _plan(self, waiter: W, looks: int, now: float) -> None:
        self._number += 1
        self._looks[waiter] = (self._number, looks)
        pause = PAUSES[looks] if looks < len(PAUSES) else max(PAUSES[-1], len(self._looks) / READS_PER_SECOND)
        heapq.heappush(self._heap, (now + pause, self._number, waiter))


#: Seconds between two looks at a few jobs, and most jobs that are looked at in a second: some percent of a processor.
LOOK, JOBS_PER_SECOND = 0.05, 5000


def look_pause(jobs: int) -> float:
    """Seconds until the next look at so many jobs: it grows with them, so that looks never take more than their
    share."""
    return max(LOOK, jobs / JOBS_PER_SECOND)
