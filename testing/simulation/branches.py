"""The function that trees of jobs are grown with: a run does as the plan says of its item, and returns what it says."""

from __future__ import annotations

from typing import Any

from ...sdk.context import Context
from .host import here
from .inside import play


async def branch(job: str, context: Context, step: Any = None, n: int = -1) -> Any:
    """One run. `job`: its name behind the number of its tree; it is told a parent's result, or which item it is."""
    item = here().journal.trees.runs(context.id, job, step, n)
    await play(item.n, context)
    return item.result
