"""Which items are running, in memory that a supervisor can read after their process has died.

One 8-byte cell per slot holds the key of what runs in it (0: nothing), so knowing the suspects of a crash costs one
store per item and no message. The first cell is the event loop's heartbeat.
"""

from __future__ import annotations

import mmap
import os
import tempfile

_CELL = 8


class Board:
    """`fd` stays open in the supervisor; the executor inherits it. Cells: heartbeat in ns, then one per slot."""

    def __init__(self, fd: int, slots: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _CELL * (slots + 1))
        self.cells = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls, slots: int) -> Board:
        """A fresh board, all zero."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("tailrace-board")
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, _CELL * (slots + 1))
        return cls(fd, slots)

    def running(self) -> set[int]:
        """Keys of what runs, or ran when the process died."""
        return set(self.cells[1:]) - {0}

    def last_beat(self) -> float:
        """CLOCK_MONOTONIC seconds of the event loop's last turn of its heartbeat; 0: none yet."""
        return self.cells[0] / 1e9

    def close(self) -> None:
        """Frees the memory. Harmless when closed."""
        if self.fd >= 0:
            self.cells.release()
            self._map.close()
            os.close(self.fd)
            self.fd = -1
