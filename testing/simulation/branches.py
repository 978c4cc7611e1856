"""The function of items of job trees: a run does its item's deed from the plan, and returns its item's result."""

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
