"""The kernel's list of processes (Linux: /proc), and a way to end one of them without ever hitting another.

The guard imports this without the rest of the platform. Where there is no /proc the list is empty: there a group is
ended by its number alone.
"""

from __future__ import annotations

import errno
import os
import signal
import time

from .rules.ending import Process, Ward, theirs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

#: The variable that bears an executor's mark. Everything that it starts inherits it.
VARIABLE = "TAILRACE_EXECUTOR"
_MARK = VARIABLE.encode() + b"="
#: A start after which nothing was started: no environment is read.
NO_MARKS = 1 << 62
_SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_TICKS = os.sysconf("SC_CLK_TCK")


def now_in_ticks() -> int:
    """The present time on the clock by which the kernel notes when a process was started."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return 0 if clock is None else int(time.clock_gettime(clock) * _TICKS)


def listed(since: int = 0) -> list[Process]:
    """All running processes that may be seen. Marks are read of those started at `since` or later. Raises OSError when
    this process may open no more: an empty list would mean that nothing is left."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - the guard does not load pathlib
    except OSError as error:
        if error.errno in _SHORT:
            raise
        return []
    found = [look_up(int(name), since) for name in names if name.isdecimal()]
    return [process for process in found if process is not None]


def look_up(pid: int, since: int = 0) -> Process | None:
    """One process; None: it is gone, or cannot be seen. Raises OSError as `listed` does."""
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        state, parent, group, session, start = fields[0], *map(int, fields[1:4]), int(fields[19])
    except OSError as error:
        if error.errno in _SHORT:
            raise
        return None
    except (ValueError, IndexError):
        return None
    dead = state in (b"Z", b"X")
    mark = "" if dead or start < since else _mark(pid)
    return Process(pid, parent, group, session, start, mark, dead)


def _mark(pid: int) -> str:
    try:
        environment = _read(f"/proc/{pid}/environ")
    except OSError as error:  # another user's, or one that may not be looked into
        if error.errno in _SHORT:
            raise
        return ""
    at = 0 if environment.startswith(_MARK) else environment.find(b"\0" + _MARK) + 1
    if not at and not environment.startswith(_MARK):
        return ""
    start = at + len(_MARK)
    return environment[start : environment.find(b"\0", start)].decode("ascii", "replace")


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def end(process: Process) -> bool:
    """Sends SIGKILL to this process, and to no other that has its number by now. False: it may not be ended by us."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):  # no such call, or it is not allowed: then by its number
        handle = -1
    try:
        again = look_up(process.pid, NO_MARKS)
        if again is None or again.start != process.start:
            return True
        if handle >= 0:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        if handle >= 0:
            os.close(handle)


def end_each(found: Iterable[Process]) -> list[Process]:
    """Ends these processes. Returns those that may be ended by us."""
    return [process for process in found if end(process)]


def end_until_none_is_left(ward: Ward, spared: Collection[int], patience: float) -> bool:
    """Ends the processes of an executor, round after round, until a round finds none. False: patience ended before,
    since the kernel holds a process that was ended, or this process cannot look."""
    until = time.monotonic() + patience
    pause = 0.002
    while True:
        try:
            if not end_each(theirs(listed(ward.start), ward, spared)):
                return True
        except OSError:
            pass  # it may open no more just now
        if time.monotonic() > until:
            return False
        time.sleep(pause)
        pause = min(0.1, pause * 2)
