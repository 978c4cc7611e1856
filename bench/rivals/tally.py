"""How many items a group of processes did: a file of eight bytes for each, mapped into memory, so that counting costs a
rival next to nothing and whoever measures asks none of them."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

_COUNT = struct.Struct("=Q")


class Tally:
    """This process's count; begun anew in a process that was forked from it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cells: memoryview | None = None
        os.register_at_fork(after_in_child=self._forget)

    def add(self) -> None:
        """One more."""
        if self._cells is None:
            self._cells = self._begin()
        self._cells[0] += 1

    def _begin(self) -> memoryview:
        path = self._folder / str(os.getpid())
        path.write_bytes(_COUNT.pack(0))
        with path.open("r+b") as file:
            return memoryview(mmap.mmap(file.fileno(), _COUNT.size)).cast("Q")

    def _forget(self) -> None:
        self._cells = None


def total(folder: Path) -> int:
    """Of all processes together, as it is now."""
    counts = (path.read_bytes() for path in folder.iterdir())
    return sum(_COUNT.unpack(count)[0] for count in counts if len(count) == _COUNT.size)
