"""The functions of the scenario `neighbours`: runs of ten milliseconds, one of which fails always, that note their
start and their tenant."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import NamedTuple

from ..sdk.context import Context
from ..sdk.function import function

#: Seconds that each run takes.
TAKES = 0.01

_STARTS = os.environ.get("TAILRACE_BENCH_STARTS", "")
_open: list[int] = []


class Start(NamedTuple):
    """A start of a run: its tenant, its time (monotonic), and seconds since its item was due to be sent."""

    tenant: str
    at: float
    late: float


@function(name="neighbour", priority="user_visible")
async def neighbour(context: Context, sent: float) -> None:
    """Notes its start, and takes its time."""
    at = time.monotonic()
    if not _open:
        _open.append(os.open(_STARTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    os.write(_open[0], f"{context.tenant} {at:.6f} {at - sent:.6f}\n".encode())
    await asyncio.sleep(TAKES)


@function(name="neighbour_that_fails", priority="user_visible")
async def neighbour_that_fails(sent: float) -> None:
    """Takes its time, and fails."""
    await asyncio.sleep(TAKES)
    raise RuntimeError("it fails always, as the scenario asks")


def started(path: Path) -> list[Start]:
    """All starts so far."""
    rows = (line.split() for line in path.read_text().splitlines()) if path.exists() else ()
    return [Start(tenant, float(at), float(late)) for tenant, at, late in rows]
