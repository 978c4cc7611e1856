"""The output of functions, which never fails them. Output that cannot be written (its reader has gone, the disk is
full) is dropped, and how much was dropped is told as soon as something can be written again."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


class PrintedBytes(io.FileIO):
    """The bytes of a stream on their way to `descriptor`, which stays open. A write never fails."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._lost = 0
        self._why = ""

    def write(self, data: Any, /) -> int:
        """Writes as much as can be written; the rest is lost, and counts as written."""
        size = memoryview(data).nbytes
        try:
            if self._lost:
                super().write(f"\n[tailrace: {self._lost} bytes printed here were lost: {self._why}]\n".encode())
                self._lost = 0
            written = super().write(data)
            if written or not size:
                return written
            why = "it would have had to wait"  # somebody told the descriptor not to
        except OSError as error:
            why = os.strerror(error.errno or 0)
        self._lost += size
        self._why = why
        return size


def forgiving(stream: TextIO) -> TextIO:
    """A stream that writes where this one does, and like it, but never fails."""
    if not isinstance(stream, io.TextIOWrapper):  # there is none, or it is somebody's own
        return stream
    raw = PrintedBytes(stream.fileno())
    raw.name = stream.name
    buffer: Any = raw if stream.write_through else io.BufferedWriter(raw)
    same: Any = io.TextIOWrapper(
        buffer,
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    same.mode = stream.mode
    found: TextIO = same
    return found


def never_fail() -> None:
    """Replaces this process's standard output and error by streams that lose output rather than fail."""
    sys.stdout, sys.stderr = forgiving(sys.stdout), forgiving(sys.stderr)
