"""The count of items that a group of processes ran: a file of sixteen bytes for each thread that counts, mapped into
memory, so that counting costs a rival next to nothing and the measuring process asks none of them."""

from __future__ import annotations

import mmap
import os
import struct
import threading
from itertools import count
from pathlib import Path

#: Number of items, and the time of the last one that told it (nanoseconds of this machine's monotonic clock).
_COUNT = struct.Struct("=QQ")


class RunTally:
    """The count of this process, each thread's apart, so that none is lost between two of them; begun anew in a process
    that was forked from it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own, self._numbers = threading.local(), count()
        os.register_at_fork(after_in_child=self._forget)

    def add(self, at: int = 0) -> None:
        """Counts one more; `at`: its time, where it is told."""
        cells: memoryview | None = getattr(self._own, "cells", None)
        if cells is None:
            cells = self._own.cells = self._begin()
        cells[0] += 1
        if at:
            cells[1] = at

    def _begin(self) -> memoryview:
        path = self._folder / f"{os.getpid()}-{next(self._numbers)}"
        path.write_bytes(_COUNT.pack(0, 0))
        with path.open("r+b") as file:
            return memoryview(mmap.mmap(file.fileno(), _COUNT.size)).cast("Q")

    def _forget(self) -> None:
        self._own = threading.local()


def total(folder: Path) -> int:
    """Count of all processes together, as it is now."""
    return sum(count for count, _ in _cells(folder))


def latest(folder: Path) -> float:
    """The latest time that any process told, seconds; 0: there is none."""
    return max((at for _, at in _cells(folder)), default=0) / 1e9


def _cells(folder: Path) -> list[tuple[int, int]]:
    found = (path.read_bytes() for path in folder.iterdir())
    return [_COUNT.unpack(each) for each in found if len(each) == _COUNT.size]
