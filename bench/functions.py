"""The functions that the scenarios run: no-ops, and some that note in a file that they ran."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from ..sdk.function import Function, function

#: Number of no-op functions.
FUNCTIONS = 200


def no_op(number: int, downstreams: Sequence[str] = ()) -> Function[[], object]:
    """The no-op function of that number, declared to call these downstreams."""

    async def noop() -> None:
        return None

    return function(name=f"noop_{number:03}", priority="user_visible", downstreams=downstreams)(noop)


globals().update({f"noop_{number:03}": no_op(number) for number in range(FUNCTIONS)})

_STARTS = os.environ.get("TAILRACE_BENCH_STARTS", "")


@function(name="bench_start", priority="interactive")
async def bench_start(sent: float) -> None:
    """Writes the time since `sent`, on this machine's monotonic clock, to the file of the run."""
    late = time.monotonic() - sent
    descriptor = os.open(_STARTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{late:.6f}\n".encode())
    finally:
        os.close(descriptor)


@function(name="bench_number", priority="user_visible")
async def bench_number(number: int) -> None:
    """Writes its number to the file of the run."""
    descriptor = os.open(_STARTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{number}\n".encode())
    finally:
        os.close(descriptor)


def numbers_seen(path: Path) -> list[int]:
    """Numbers written so far; one that ran again stands there twice."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def starts(path: Path) -> list[float]:
    """Latencies written so far, seconds."""
    return [float(line) for line in path.read_text().split()] if path.exists() else []


__all__ = ["FUNCTIONS", "bench_number", "bench_start", "no_op", "numbers_seen", "starts"]
