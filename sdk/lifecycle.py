"""One lifecycle for everything that runs: start, drain, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol


class Part(Protocol):
    """Something that runs.

    start   returns when it is ready to work; raises with a clear message when it cannot be
    drain   takes nothing new, finishes or hands back what it has; returns by `timeout` seconds at the latest
    stop    ends now; safe after a failed start, and twice
    """

    async def start(self) -> None: ...

    async def drain(self, timeout: float) -> None: ...

    async def stop(self) -> None: ...


class Group:
    """Several parts as one: started in order, drained and stopped in reverse; a failed start stops what had started."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = list(parts)
        self._started: list[Part] = []

    async def start(self) -> None:
        for part in self._parts:
            try:
                await part.start()
            except BaseException:
                await part.stop()
                await self.stop()
                raise
            self._started.append(part)

    async def drain(self, timeout: float) -> None:
        for part in reversed(self._started):
            await part.drain(timeout)

    async def stop(self) -> None:
        while self._started:
            await self._started.pop().stop()


async def cancel(task: asyncio.Future[Any]) -> None:
    """Cancels `task` and waits until it has ended; harmless when it had ended already.

    Raises what the task had failed with, and `CancelledError` only if the caller itself is cancelled meanwhile: with
    `suppress(CancelledError)` around an `await task` that second cancellation would be lost, and its sender would wait
    for ever.
    """
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
