"""The function that trees of jobs are grown with: a run does as the plan says of its item, and returns what it says."""

from __future__ import annotations

from typing import Any

from ...sdk.context import Context
from .executor_inside import play
from .host import here


async def branch(job: str, context: Context, step: Any = None, n: int = -1) -> Any:
    """Plays one run of a tree's item. `job`: the number of its tree and the name of its job. `step`: the result or
    event that it was made of; `n`: its own number, where it was added."""
    item = here().journal.trees.runs(context.id, job, step, n)
    await play(item.n, context)
    return item.result
