"""Signal that work which was handed to tasks is handed on: a task that leases one claim pushes it, and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


class HandedOn:
    """The signal for some tasks: `future` is done when all of them have ended, or after so many seconds, since one may
    go on to something else. None is a task that ended long ago."""

    __slots__ = ("_left", "_timer", "future")

    def __init__(self, tasks: Iterable[asyncio.Task[Any] | None], within: float) -> None:
        loop = asyncio.get_running_loop()
        waits = {task for task in tasks if task is not None and not task.done()}
        self.future: asyncio.Future[None] = loop.create_future()
        self._left = len(waits)
        self._timer = loop.call_later(within if waits else 0.0, self._over)
        for task in waits:
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._left -= 1
        if not self._left:
            self._timer.cancel()
            self._over()

    def _over(self) -> None:
        if not self.future.done():
            self.future.set_result(None)
