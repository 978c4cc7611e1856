"""A folder whose file system has hung: every call on it waits until it is gone (a FUSE mount that nobody answers for,
as a file server that is away)."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_DETACH = 2


@contextlib.contextmanager
def hung(folder: Path) -> Iterator[Path]:
    """Hangs a file system at that path for as long as the context lasts; then it is gone, with an error for all who
    wait. Skips where nobody may mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder.mkdir(parents=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        pytest.skip(f"no file system can be made to hang here: {error}")
    try:
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"hung", os.fsencode(folder), b"fuse", 0, options):
            pytest.skip(f"no file system can be made to hang here: {os.strerror(ctypes.get_errno())}")
        try:
            yield folder
        finally:
            libc.umount2(os.fsencode(folder), _DETACH)
    finally:
        os.close(device)
