"""Births of folders: the moment when a folder was made tells it from another one that bears its name later.

Numbers of files do not tell them apart: many file systems give the number of a folder that was deleted to the next one
that is made.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

_MOUNTS = Path("/proc/mounts")
#: A folder of an image is made again, as it were, when something is first written to it.
_REMADE = ("overlay", "aufs")
#: Linux: flags and places of statx(2), of which Python has no call.
_EMPTY_PATH, _BIRTH, _BIRTH_AT, _SIZE = 0x1000, 0x800, 80, 256


class AnotherFolder(OSError):
    """A folder is not the one that was read before."""

    def __init__(self) -> None:
        super().__init__(
            0,
            "it is another folder than the one that was read before: made again under the same name, or another disk "
            "is mounted there",
        )


def birth_of(descriptor: int) -> str:
    """The birth of an open folder, as text; empty where the system does not tell."""
    if (told := getattr(os.fstat(descriptor), "st_birthtime", None)) is not None:
        return f"{told:.6f}"
    if (statx := _statx()) is None:
        return ""
    found = ctypes.create_string_buffer(_SIZE)
    if statx(descriptor, b"", _EMPTY_PATH, _BIRTH, found) != 0:
        return ""
    mask = int.from_bytes(found.raw[:4], sys.byteorder)
    seconds = int.from_bytes(found.raw[_BIRTH_AT : _BIRTH_AT + 8], sys.byteorder, signed=True)
    nanoseconds = int.from_bytes(found.raw[_BIRTH_AT + 8 : _BIRTH_AT + 12], sys.byteorder)
    return f"{seconds}.{nanoseconds:09}" if mask & _BIRTH and seconds else ""


@cache
def _statx() -> Any:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "statx", None)


def is_remade(root: Path) -> bool:
    """Whether a folder is on a file system that makes it again when it is first written to."""
    try:
        return file_system(root.resolve(), _MOUNTS.read_text(errors="surrogateescape")) in _REMADE
    except OSError:
        return False


def file_system(path: Path, mounts: str) -> str:
    """The type of the file system of an absolute path, by a text like /proc/mounts; empty when unknown."""
    best, found = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1]))
        depth = len(point.parts)
        if depth >= best and path.is_relative_to(point):  # of two on one point, the later one hides the earlier
            best, found = depth, fields[2]
    return found
