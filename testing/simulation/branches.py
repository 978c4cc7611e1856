"""The functions of items of job trees: a run does its item's deed from the plan, and returns its item's result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from ...model.job import JobHolder
from ...sdk.context import Context
from ...sdk.gathered import Gathered
from .executor_inside import GLANCE, play
from .host import here
from .journal import Execution


async def branch(job: str, context: Context, step: Any = None, n: int = -1) -> Any:
    """Plays one run of a tree's item. `job`: the number of its tree and the name of its job. `step`: the result or
    event that it was made of; `n`: its own number, where it was added."""
    item = here().journal.trees.runs(context.id, job, step, n)
    await play(item.n, context)
    return item.result


async def gathering(job: str, context: Context, step: Gathered[Any]) -> Any:
    """Plays one run of an item that gathers in a narrow tree: it reads the results before it ends."""
    trees = here().journal.trees
    item = trees.runs(context.id, job, None, -1)

    async def reads(run: Execution, sleeps: Callable[[float], Awaitable[None]]) -> None:
        reading = _READING.set((run, sleeps))
        try:
            trees.gathered(context.id, [each async for each in step])
        finally:
            _READING.reset(reading)

    await play(item.n, context, reads)
    return item.result


class PageReader:
    """A ResultReader: has a client of the world read each page, and looks now and then whether it is there."""

    def __init__(self, holder: JobHolder) -> None:
        self._holder = holder

    async def awaited_pages(self) -> AsyncGenerator[list[bytes], None]:
        """Yields the results of each page. Raises Conflict for a run that lost its item."""
        trees, (run, sleeps) = here().journal.trees, _READING.get()
        assert (run.id, run.fence) == self._holder
        more, after = True, ""
        while more:
            trees.reads(run, after)
            while (page := trees.page(run, after)) is None:
                await sleeps(GLANCE)
            yield [each.result for each in page.results if each.succeeded]
            after, more = page.after, bool(page.after)


#: The run that reads, and its way to sleep.
_READING: ContextVar[tuple[Execution, Callable[[float], Awaitable[None]]]] = ContextVar("tailrace-simulated-reading")
