"""The memory that a worker's guard, its supervisor and its executors share: a page for each executor.

The supervisor writes which executor runs there (a mark, a process id), the executor the time to which its kernel timer
is armed, the guard the time at which it saw the executor die. Nobody sends anything: the last words written hold, even
if their writer has died or stands still. An executor maps its own page alone. The guard imports this without the rest
of the platform.
"""

from __future__ import annotations

import mmap
import os
import struct

#: Executors that one worker may have at a time.
MOST = 4096
#: Bytes of a page: memory is mapped by multiples of this.
PAGE = mmap.ALLOCATIONGRANULARITY

_COUNT = struct.Struct("=Q")  # on the first page: pages that were ever used
_MARK = struct.Struct("=16s")
_PID = struct.Struct("=Q")
_TIME = struct.Struct("=d")
_PID_AT, _DEADLINE_AT, _DIED_AT = 16, 24, 32
_NONE = bytes(16)


class WatchPage:
    """An executor's own page, as the executor sees it. The descriptor is not kept."""

    def __init__(self, fd: int, number: int) -> None:
        self._map = mmap.mmap(fd, PAGE, offset=PAGE * (number + 1))

    def tell_armed(self, deadline: float) -> None:
        """Records the CLOCK_MONOTONIC time to which the kernel timer is armed; 0: it is off."""
        _TIME.pack_into(self._map, _DEADLINE_AT, deadline)


class WatchPages:
    """All pages. Invariant: a page whose mark is not zero belongs to an executor that may have left processes."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, PAGE * (MOST + 1))
        self._free: list[int] = []

    @classmethod
    def create(cls) -> WatchPages:
        """Makes fresh memory. Pages that are never used take none."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("lease-guard")
        else:
            import tempfile

            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, PAGE * (MOST + 1))
        return cls(fd)

    @property
    def count(self) -> int:
        """Number of pages that were ever used, from the first one on."""
        number: int = _COUNT.unpack_from(self._map, 0)[0]
        return min(number, MOST)

    # -- the supervisor's --------------------------------------------------------------------------------------------

    def take(self) -> tuple[int, str]:
        """Takes a page for an executor that will be started: its number, and a mark that nobody ever had. Raises
        OSError when all are taken."""
        count = self.count
        if not self._free and count >= MOST:
            raise OSError(f"a worker can have {MOST} executors at a time, and has them")
        number = self._free.pop() if self._free else count
        at = self._at(number)
        mark = os.urandom(16)
        self._map[at : at + 40] = bytes(40)
        _MARK.pack_into(self._map, at, mark)
        if number == count:
            _COUNT.pack_into(self._map, 0, count + 1)
        return number, mark.hex()

    def started(self, number: int, pid: int) -> None:
        """Records the process id of an executor that runs now."""
        _PID.pack_into(self._map, self._at(number) + _PID_AT, pid)

    def free(self, number: int) -> None:
        """Gives back the page of an executor of which nothing is left."""
        _MARK.pack_into(self._map, self._at(number), _NONE)
        self._free.append(number)

    def armed(self, number: int) -> float:
        """The time to which an executor's kernel timer is armed, or was when it died; 0: it was off."""
        deadline: float = _TIME.unpack_from(self._map, self._at(number) + _DEADLINE_AT)[0]
        return deadline

    def died(self, number: int) -> float:
        """The time at which the guard saw an executor die; 0: it did not."""
        when: float = _TIME.unpack_from(self._map, self._at(number) + _DIED_AT)[0]
        return when

    def close(self) -> None:
        """Frees the memory on this side. Harmless when closed."""
        if self.fd >= 0:
            self._map.close()
            os.close(self.fd)
            self.fd = -1

    # -- the guard's -------------------------------------------------------------------------------------------------

    def who(self, number: int) -> tuple[str, int, float]:
        """Mark (empty: no executor), process id (0: not started yet) and deadline (0: none) of a page."""
        at = self._at(number)
        mark: bytes = _MARK.unpack_from(self._map, at)[0]
        pid: int = _PID.unpack_from(self._map, at + _PID_AT)[0]
        return "" if mark == _NONE else mark.hex(), pid, self.armed(number)

    def tell_died(self, number: int, when: float) -> None:
        """Records that an executor was dead at this time; it died then or a little earlier."""
        _TIME.pack_into(self._map, self._at(number) + _DIED_AT, when)

    @staticmethod
    def _at(number: int) -> int:
        return PAGE * (number + 1)
