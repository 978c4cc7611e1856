"""Leases that wait on a server: when they look is the poller's to say; a look is carried through, whoever leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ...sdk.model.claim import Leased, Settle, State
from ...sdk.model.demand import Demand
from ...sdk.model.errors import Unavailable
from .poller import Poller

T = TypeVar("T")

#: Ends hand-outs of one claim, as Queue.settle does.
Ends = Callable[[int, Sequence[str], Sequence[Settle]], Awaitable[list[str]]]

_LOG = logging.getLogger("tailrace.stores")


class Waiting:
    """`settle` gives back what was claimed for nobody."""

    def __init__(self, settle: Ends, poller: Poller) -> None:
        self._settle = settle
        self._running: set[asyncio.Task[Any]] = set()
        self.poller = poller

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Carries work through, whoever waits for it."""
        task = asyncio.create_task(work, name="queue-on-a-server")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(self) -> None:
        """Waits for what runs, and polls no more."""
        while self._running:
            await asyncio.wait(self._running)
        await self.poller.close()

    async def lease(
        self,
        demand: Demand,
        look: Callable[[], Coroutine[Any, Any, Leased | float]],
        wait: float,
        quiet: Callable[[], float],
    ) -> Leased | None:
        """Looks until a look claims something of the demand, for `wait` seconds. A look that claims nothing answers how
        many seconds later something may be due. `quiet`: for how many seconds nothing is to be claimed."""

        async def once() -> Leased | float:
            pause = quiet()
            return pause if pause > 0 else await self._look(look)

        return await self.poller.find(demand, wait, once)

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
