"""Parts that the machine itself kept waiting: the kernel says how long a process was ready to run and had no processor.

On a busy machine a part may be silent for as long as if it had been stopped, and nobody put that fault in. What such a
part held may run twice like what a fault hit, so it is told apart from duplicates that nothing explains.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from .path import DoneFault, Hit, Reach, reach_of

#: Seconds between two looks, and the share of a heartbeat's time that a part must have waited for a processor.
LOOK, SHARE = 0.2, 0.5


class ProcessorWaits:
    """The waits of one process for a processor, seen over time. Invariant: looks are in order, and but for the first
    within the last `window` seconds."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._looks: deque[tuple[float, float]] = deque()

    def seen(self, at: float, waited: float) -> tuple[float, float] | None:
        """Takes in the seconds that it waited in all; returns begin and end of the time for which it was starved,
        if it is."""
        looks = self._looks
        looks.append((at, waited))
        while len(looks) > 2 and looks[1][0] <= at - self._window:
            looks.popleft()
        begin, before = looks[0]
        return (begin, at) if waited - before >= SHARE * self._window else None


class StarvedParts:
    """Watches the main threads of parts. `pids`: their process ids by name, 0 for one that is away; `found`: the times
    for which one was starved."""

    def __init__(self, pids: Callable[[], Mapping[str, int]], heartbeat: float) -> None:
        self.found: list[DoneFault] = []
        self._pids, self._heartbeat = pids, heartbeat
        self._waits: dict[tuple[str, int], ProcessorWaits] = {}

    async def watch(self) -> None:
        """Looks, for ever."""
        while True:
            await asyncio.sleep(LOOK)
            for part, pid in self._pids().items():
                with contextlib.suppress(OSError):  # it has just ended, or the kernel does not say
                    waited = float(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
                    self._seen(part, pid, time.monotonic(), waited)

    def _seen(self, part: str, pid: int, at: float, waited: float) -> None:
        waits = self._waits.setdefault((part, pid), ProcessorWaits(self._heartbeat))
        starved = waits.seen(at, waited)
        if starved is None:
            return
        reach = reach_of(part)
        pids = frozenset((pid,)) if reach in (Reach.RAN, Reach.TAILED) else frozenset[int]()
        kind = f"starved {re.sub(r'-[0-9]+', '', part)}"
        last = next((each for each in reversed(self.found) if each.hits[0].pids == pids and each.kind == kind), None)
        begin, end = starved
        if last is not None and last.end >= begin:
            self.found.remove(last)
            begin = last.begin
        self.found.append(DoneFault(kind, begin, end, (Hit(reach, begin, end, pids),)))
