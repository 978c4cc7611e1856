"""Runs several coroutines that go on together and end together.

Not `asyncio.TaskGroup`: below Python 3.13 a group one of whose tasks fails leaves the task that waits for it counted as
cancelled (with 3.11.2, Debian 12's, each `asyncio.timeout` in it ends in CancelledError from then on), and from 3.13 on
a task that was told to end meanwhile is cancelled once more, in the midst of closing something.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any


async def together(*works: Coroutine[Any, Any, object]) -> None:
    """Runs these until all have returned. When one fails the others are cancelled, and its error is raised once they
    have ended. Cancelled, it cancels them and raises CancelledError once they have ended, whatever fails in them
    meanwhile."""
    if not works:
        return
    tasks = [asyncio.create_task(work) for work in works]
    failed: BaseException | None = None
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = next((error for error in map(_error, tasks) if error is not None), None)
    finally:
        await _end(tasks)
    if failed is not None:
        raise failed


async def _end(tasks: Sequence[asyncio.Task[object]]) -> None:
    """Cancels tasks that have not ended and waits for them, however often it is cancelled itself."""
    for task in tasks:
        task.cancel()
    told: asyncio.CancelledError | None = None
    while left := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as error:
            told = error
    for task in tasks:
        _error(task)  # an error that nobody asks for is reported by the interpreter
    if told is not None:
        raise told


def _error(task: asyncio.Task[object]) -> BaseException | None:
    """The error of a task; None: it has none."""
    return task.exception() if task.done() and not task.cancelled() else None
