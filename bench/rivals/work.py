"""The functions that every rival runs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .settings import settings
from .tally import RunTally

_HERE = settings()
_TALLY = RunTally(Path(_HERE.tally))


def noop() -> None:
    """Counts itself."""
    _TALLY.add()


class GatheredEnd(NamedTuple):
    """The end of a gathering: its time (seconds of this machine's monotonic clock), and its number of values."""

    at: float
    values: int


def part(number: int) -> int:
    """Returns its number, counts itself and tells its time."""
    _TALLY.add(time.monotonic_ns())
    return number


def gathered(values: Sequence[int]) -> None:
    """Writes the time of its end, and the number of different values, to the file of the run."""
    _write(f"{time.monotonic():.6f} {len({*values})}\n")


def ends(path: Path) -> list[GatheredEnd]:
    """Gatherings that have ended."""
    rows = (line.split() for line in path.read_text().splitlines()) if path.exists() else ()
    return [GatheredEnd(float(at), int(values)) for at, values in rows]


def started(sent: float) -> None:
    """Writes the time since `sent`, on this machine's monotonic clock, to the file of the run, as tailrace's
    `bench_start` does."""
    late = time.monotonic() - sent
    _write(f"{late:.6f}\n")


def _write(line: str) -> None:
    descriptor = os.open(_HERE.starts, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
