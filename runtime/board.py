"""The board: which items ran last, in memory that a supervisor can read after their process has died.

One 8-byte cell per slot holds the key of the item that began last in it (0: none did), so knowing the suspects of a
crash costs one store per item and no message. The key stays when the run has ended: something that its function left
behind may end the process before the outcome is sent, and an item that does so again must be known. The first cell is
the event loop's heartbeat, the last one the pulse of the thread that listens for renewals. Behind the cells is room for
one progress note, which outlives the process, as a frame that was not sent does not.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile

#: The bit of a cell that says that its item only waits for other work; no key has it (a flight's number stays below).
WAITS = 1 << 55
_CELL = 8
#: A note's key, its length, its text: 1024 characters of UTF-8.
_NOTE = struct.Struct("=QI")
_TEXT = 4096


def note_at(slots: int) -> int:
    """The place of the note, bytes: behind the cells of so many slots, a heartbeat and a pulse."""
    return _CELL * (slots + 2)


class Board:
    """The shared memory of one executor. `fd` stays open in the supervisor; the executor inherits it. Cells: heartbeat
    in ns, one per slot, pulse in ns."""

    def __init__(self, fd: int, slots: int) -> None:
        self.fd = fd
        self._note = note_at(slots)
        self._map = mmap.mmap(fd, self._note + _NOTE.size + _TEXT)
        self.cells = memoryview(self._map)[: self._note].cast("Q")

    @classmethod
    def create(cls, slots: int) -> Board:
        """A fresh board, all zero."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("tailrace-board")
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        try:
            os.ftruncate(fd, note_at(slots) + _NOTE.size + _TEXT)
            return cls(fd, slots)
        except BaseException:
            os.close(fd)
            raise

    def running(self) -> set[int]:
        """Keys of the items that began last in each slot and do not wait for other work; those of them that have not
        ended are running."""
        return {key for key in self.cells[1:-1] if key and not key & WAITS}

    def waiting(self) -> set[int]:
        """Keys of items that wait for other work, or waited when the process died."""
        return {key & ~WAITS for key in self.cells[1:-1] if key & WAITS}

    def write_note(self, key: int, note: str) -> None:
        """Records the latest note of the one item that runs here."""
        text = note.encode("utf-8", "replace")[:_TEXT]
        start = self._note + _NOTE.size
        _NOTE.pack_into(self._map, self._note, 0, 0)  # while the text changes there is none
        self._map[start : start + len(text)] = text
        _NOTE.pack_into(self._map, self._note, key, len(text))

    def last_note(self) -> tuple[int, str]:
        """Key of the item that wrote the last note (0: none did), and that note."""
        key, length = _NOTE.unpack_from(self._map, self._note)
        start = self._note + _NOTE.size
        return key, self._map[start : start + min(length, _TEXT)].decode("utf-8", "replace")

    def last_beat(self) -> float:
        """CLOCK_MONOTONIC seconds of the event loop's last turn of its heartbeat; 0: none yet."""
        return self.cells[0] / 1e9

    def last_pulse(self) -> float:
        """CLOCK_MONOTONIC seconds at which the control thread last ran; 0: it has not begun."""
        return self.cells[-1] / 1e9

    def close(self) -> None:
        """Frees the memory. Harmless when closed."""
        if self.fd >= 0:
            self.cells.release()
            self._map.close()
            os.close(self.fd)
            self.fd = -1
