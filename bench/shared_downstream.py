"""A downstream for the scenario of that name: a token bucket that processes share through a file, and its counts of
calls in each tenth of a second."""

from __future__ import annotations

import fcntl
import mmap
import struct
import time
from contextlib import closing
from pathlib import Path

#: Capacity a second, tokens, the time of that (monotonic); then the time of its begin, and runs after a first attempt.
_STATE = struct.Struct("ddddq")
#: Calls that it took, and that it throttled, in a tenth of a second.
_TENTH = struct.Struct("ii")
#: Tenths of a second that are kept, and seconds of its capacity that it takes at once.
TENTHS, BURST = 3000, 0.1


class Downstream:
    """Takes so many calls a second of all processes that have it open. Invariant: only the holder of the file's lock
    changes it."""

    def __init__(self, path: Path) -> None:
        size = _STATE.size + TENTHS * _TENTH.size
        with path.open("a+b") as file:
            file.truncate(size)
        self._file = path.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), size)

    def begin(self, capacity: float) -> None:
        """Begins to take calls, so many a second."""
        now = time.monotonic()
        _STATE.pack_into(self._map, 0, capacity, capacity * BURST, now, now, 0)

    def change(self, capacity: float) -> None:
        """Changes the number of calls a second that it takes."""
        with closing(_Locked(self._file.fileno())):
            _, tokens, at, began, spent = _STATE.unpack_from(self._map)
            _STATE.pack_into(self._map, 0, capacity, min(tokens, capacity * BURST), at, began, spent)

    def call(self, attempt: int) -> bool:
        """Counts a call, and says whether it is taken."""
        with closing(_Locked(self._file.fileno())):
            now = time.monotonic()
            capacity, tokens, at, began, spent = _STATE.unpack_from(self._map)
            tokens = min(capacity * BURST, tokens + (now - at) * capacity)
            taken = bool(tokens >= 1)
            _STATE.pack_into(self._map, 0, capacity, tokens - taken, now, began, spent + (attempt > 1))
            place = _STATE.size + min(TENTHS - 1, int(10 * (now - began))) * _TENTH.size
            passed, throttled = _TENTH.unpack_from(self._map, place)
            _TENTH.pack_into(self._map, place, passed + taken, throttled + (not taken))
            return taken

    @property
    def spent(self) -> int:
        """Number of runs that were no first attempts."""
        return int(_STATE.unpack_from(self._map)[4])

    def seen(self, first: float, last: float) -> list[tuple[int, int]]:
        """Counts of calls taken and throttled, in the tenths of a second between these times (monotonic)."""
        began = _STATE.unpack_from(self._map)[3]
        tenths = range(max(0, int(10 * (first - began))), min(TENTHS, int(10 * (last - began))))
        return [_TENTH.unpack_from(self._map, _STATE.size + tenth * _TENTH.size) for tenth in tenths]


class _Locked:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def close(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
