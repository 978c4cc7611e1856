"""Surroundings of a run: the load of the machine, the event loop, the file system. Without these its figures compare
with nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..foundation.loop import VARIABLE, loop_factory

#: The kernel's list of mounts.
_MOUNTS = Path("/proc/self/mountinfo")


def surroundings(folder: Path) -> dict[str, Any]:
    """Facts about a run whose data is in a folder: the niceness it was started with (0: as users start it; below:
    raised), the load of the last minute before it, the event loop of every process but executors, and the file system
    of its data."""
    return {
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "load_1m": round(os.getloadavg()[0], 2),
        "loop": "uvloop" if loop_factory(os.environ.get(VARIABLE, "")) is not None else "asyncio",
        "file_system": file_system(folder.resolve()),
    }


def file_system(path: Path) -> str:
    """The kind of a path's file system, as the kernel calls it; empty where it does not say."""
    try:
        return kind_of(path, _MOUNTS.read_text().splitlines())
    except OSError:
        return ""


def kind_of(path: Path, mounts: Sequence[str]) -> str:
    """The kind of the deepest mount above a path, by lines as in proc(5); the last one of the same place counts."""
    best, kind = -1, ""
    for line in mounts:
        place, _, rest = line.partition(" - ")
        where = Path(place.split(" ")[4].replace("\\040", " "))
        if len(where.parts) >= best and path.is_relative_to(where):
            best, kind = len(where.parts), rest.split(" ")[0]
    return kind
