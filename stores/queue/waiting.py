"""Leases that wait on a server: they look again when something changed, when something may be due, and now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ...sdk.model.claim import Leased, Settle, State
from ...sdk.model.errors import Unavailable

T = TypeVar("T")

#: Ends hand-outs of one claim, as Queue.settle does.
Ends = Callable[[int, Sequence[str], Sequence[Settle]], Awaitable[list[str]]]

_LOG = logging.getLogger("tailrace.stores")


class Waiting:
    """`settle` gives back what was claimed for nobody; `poll` is the longest wait between two looks, seconds."""

    def __init__(self, settle: Ends, poll: float) -> None:
        self._settle = settle
        self._poll = poll
        self._changed = asyncio.Event()
        self._running: set[asyncio.Task[Any]] = set()
        self.count = 0  # leases that wait now

    def wake(self) -> None:
        """Something may be due."""
        self._changed.set()
        self._changed = asyncio.Event()

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Carries work through, whoever waits for it."""
        task = asyncio.create_task(work, name="queue-on-a-server")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(self) -> None:
        """Waits for what runs."""
        while self._running:
            await asyncio.wait(self._running)

    async def lease(
        self, look: Callable[[], Coroutine[Any, Any, Leased | float]], wait: float, quiet: Callable[[], float]
    ) -> Leased | None:
        """Looks until a look claims something, for `wait` seconds. A look that claims nothing answers how many seconds
        later something may be due. `quiet`: for how many seconds nothing is to be claimed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait
        while True:
            changed = self._changed
            pause = quiet()
            found = pause if pause > 0 else await self._look(look)
            if isinstance(found, Leased):
                return found
            left = deadline - loop.time()
            if left <= 0:
                return None
            self.count += 1
            try:
                async with asyncio.timeout(min(left, self._poll, max(0.001, found))):
                    await changed.wait()
            except TimeoutError:
                pass
            finally:
                self.count -= 1

    async def _look(self, look: Callable[[], Coroutine[Any, Any, Leased | float]]) -> Leased | float:
        task = self.run(look())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._hand_back)
            raise

    def _hand_back(self, task: asyncio.Task[Leased | float]) -> None:
        if task.cancelled() or task.exception() is not None or not isinstance(leased := task.result(), Leased):
            return
        self.run(self.give_back(leased))

    async def give_back(self, leased: Leased) -> None:
        """Nobody gets this claim."""
        try:
            await self._settle(leased.fence, [], [Settle(id, leased.fence, State.NEW) for id in leased.ids])
        except Unavailable as error:
            _LOG.warning("%s; what was claimed for nobody waits for its lease to end", error)
