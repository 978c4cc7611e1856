"""The functions that every rival runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .settings import settings
from .tally import RunTally

_HERE = settings()
_TALLY = RunTally(Path(_HERE.tally))


def noop() -> None:
    """Counts itself."""
    _TALLY.add()


def started(sent: float) -> None:
    """Writes how long ago `sent` was, on this machine's monotonic clock, to the file of the run: what
    tailrace's `bench_start` does."""
    late = time.monotonic() - sent
    descriptor = os.open(_HERE.starts, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{late:.6f}\n".encode())
    finally:
        os.close(descriptor)
