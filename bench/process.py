"""Facts from the kernel: memory and CPU of processes, read from /proc, and free ports."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from ..assembly.free_port import free_port

_TICK = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """The resident memory of one process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pid: int) -> float:
    """User and system time of one process so far; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def cpu_clock(pid: int) -> float:
    """User and system time of one process so far, to the microsecond: by the clock that the kernel keeps of each
    process (clock_getcpuclockid(3), whose numbers are these on Linux); 0 when it is gone."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def context_switches(pid: int) -> int:
    """Number of context switches of the living threads of one process, voluntary or not."""
    switches = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for line in (thread / "status").read_text().splitlines():
                    if "ctxt_switches" in line:
                        switches += int(line.split()[1])
    return switches


def runs(pid: int) -> bool:
    """Whether a process is there, and not a dead one that nobody has reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """Processes that a process's main thread started, or adopted."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid: int) -> list[int]:
    """A process and everything below it."""
    found = [pid]
    for parent in found:
        found.extend(children(parent))
    return found


def cpu_of_tree(pid: int) -> dict[int, float]:
    """CPU seconds of a process and everything below it, by process."""
    return {each: cpu_seconds(each) for each in descendants(pid)}


def cpu_by_name(pids: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds of named processes, each with everything below it."""
    return {name: sum(cpu_of_tree(pid).values()) for name, pid in pids.items()}


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on now. The caller must be ready to find one taken."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return [*found]
