"""Processors and memory that a worker may use: what it is bound to (affinity), and what its container's quotas leave.

A machine shows all of its processors to a container that may use one of them. Executors for all of them would only
take turns there, and each takes its memory. Quotas are those of control groups (cgroups), of either version: of the
worker's own group and of all above it, since each bounds what is below. Pure: contents of the kernel's files in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

#: Memory that an executor is counted with, bytes: the interpreter, the platform and an application take about half.
PER_EXECUTOR = 128 << 20
#: The kernel's word for "no bound" in version 1 is the largest number of pages, which is beyond this on any machine.
_NO_BOUND = 1 << 60


def groups(text: str) -> list[tuple[str, str]]:
    """The groups of a process (`/proc/self/cgroup`): controller and path. Version 2 has one, with no controller."""
    found = []
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and parts[2].startswith("/"):
            found += [(controller, parts[2]) for controller in parts[1].split(",")]
    return found


def folders(path: str) -> list[str]:
    """A group's path and all above it, without the first slash; the last one is the root, an empty text."""
    names = [name for name in path.split("/") if name not in ("", ".", "..")]
    return ["/".join(names[:count]) for count in range(len(names), -1, -1)]


def quota(text: str) -> float | None:
    """The processors of a quota, `QUOTA PERIOD` (`cpu.max`, or the two files of version 1 beside each other); None:
    there is none."""
    parts = text.split()
    try:
        allowed, period = float(parts[0]), float(parts[1])
    except (ValueError, IndexError):  # `max`
        return None
    return allowed / period if allowed > 0 and period > 0 else None


def bound(text: str) -> int | None:
    """The bytes of a memory bound (`memory.max`, `memory.limit_in_bytes`); None: there is none."""
    try:
        size = int(text)
    except ValueError:  # `max`
        return None
    return size if 0 < size < _NO_BOUND else None


def processors(affinity: int, quotas: Iterable[float | None]) -> int:
    """Processors that a process may keep busy: a part of one counts as one, and one at least is there."""
    least = min([affinity, *(math.ceil(each - 1e-9) for each in quotas if each is not None)])
    return max(1, least)


def memory(machine: int, bounds: Sequence[int | None]) -> int:
    """Bytes of memory that a process may use with all others of its group; 0: not known."""
    return min([each for each in (machine or None, *bounds) if each is not None], default=0)


def executors(processors: int, memory: int) -> int:
    """Executors of a pool: one per processor, as far as memory goes; one at least."""
    return max(1, min(processors, memory // PER_EXECUTOR) if memory else processors)
