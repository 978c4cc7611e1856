"""Blame: the item whose code the event loop is in, known by its runner or by the item that started the task."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from .entry import Runner


class Blame:
    """Finds the item whose code blocks an event loop. A task that a function starts is known by the item that started
    it, a runner's task by the item that it runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, runners: list[Runner]) -> None:
        self._loop = loop
        self._runners = runners
        self._makers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        loop.set_task_factory(self._make_task)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        key = self.culprit()
        if key:
            self._makers[task] = key
        return task

    def culprit(self) -> int:
        """Key of the item whose code the event loop is in; 0: it cannot be told. Safe from any thread."""
        task = asyncio.current_task(self._loop)
        if task is None:
            return 0
        known = self._makers.get(task, 0)
        return known or next((runner.key for runner in list(self._runners) if runner.task is task), 0)
