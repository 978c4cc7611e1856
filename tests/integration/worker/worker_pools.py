"""Functions with processes of their own: a worker that has them starts two more, so only tests that need them do."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tailrace.sdk.context import Context
from tailrace.sdk.function import function


@function(isolation="process")
def pid_alone() -> int:
    return os.getpid()


@function(isolation="process")
def stuck_alone(journal: str) -> None:
    with Path(journal).open("a") as file:
        file.write("start\n")
    time.sleep(600)


@function(pool="special")
async def pid_special() -> int:
    return os.getpid()


@function(downstreams=["api"], isolation="process")
def spends_alone(how: str, ctx: Context) -> str | None:
    ctx.used("api", tokens=800)
    ctx.used("api", tokens=12, rows=3)
    if how == "badly":
        ctx.used("api", tokens=float("nan"))
    if how == "raises":
        raise ValueError("after it was used")
    return "told" if how == "returns" else None
