"""Leases that wait on a server: the poller decides when they look, and a look is finished even if its caller leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ...model.claim import Leased, Settle, State
from ...model.demand import Demand
from ...model.errors import Unavailable
from .hand_over import Taker, Takers
from .poller import Found, LookResult, Poller

T = TypeVar("T")

#: Ends hand-outs of one claim, as Queue.settle does.
SettleItems = Callable[[int, Sequence[str], Sequence[Settle]], Awaitable[list[str]]]

_LOG = logging.getLogger("tailrace.stores")


class WaitingClaims:
    """Lease calls that wait on a server. `settle` gives back claims whose caller has left."""

    def __init__(self, settle: SettleItems, poller: Poller) -> None:
        self._settle = settle
        self._running: set[asyncio.Task[Any]] = set()
        self.poller = poller
        self.takers = Takers(self._hand_back)

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Starts a task that goes on even if its caller leaves."""
        task = asyncio.create_task(work, name="queue-on-a-server")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(self) -> None:
        """Waits for running tasks, and stops polling."""
        while self._running:
            await asyncio.wait(self._running)
        await self.poller.close()

    def wake(self) -> None:
        """Makes all waiting leases look at once: this process did something that may have made items due."""
        self.takers.close()
        self.poller.wake()

    def bring(self, taker: Taker, leased: Leased | None) -> None:
        """Ends the reservation of a waiting lease, with a claim or with None."""
        self.takers.bring(taker, leased)
        self.poller.nudge()

    async def lease(
        self,
        demand: Demand,
        seconds: float,
        look: Callable[[], Coroutine[Any, Any, Found]],
        wait: float,
        quiet: Callable[[], float],
    ) -> Leased | None:
        """Looks, for up to `wait` seconds, until a look claims items of the demand or a submission brings a claim. A
        look that claims nothing returns the seconds until something may be due. `quiet` returns the seconds for which
        no claim may be made."""
        taker = Taker(demand, seconds)

        async def once() -> Found:
            taker.looks()
            found: Found | None = None
            try:
                pause = quiet()
                found = pause if pause > 0 else await self._look(look)
            finally:
                taker.looked(found=not isinstance(found, float | int))
            return found

        if wait <= 0:
            return await self.poller.find(demand, wait, once)
        self.takers.add(taker)
        try:
            found = await self.poller.find(demand, wait, once, taker.brought)
            return found if found is not None else await taker.brought()
        finally:
            self.takers.remove(taker)

    async def _look(self, look: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
        task = self.run(look())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._hand_back)
            raise

    def _hand_back(self, task: asyncio.Future[Any]) -> None:
        if task.cancelled() or task.exception() is not None:
            return
        found = task.result()
        if isinstance(found, LookResult):
            found = found.leased
        if isinstance(found, Leased):
            self.run(self.give_back(found))

    async def give_back(self, leased: Leased) -> None:
        """Gives back a claim whose caller has left."""
        try:
            await self._settle(leased.fence, [], [Settle(id, leased.fence, State.NEW) for id in leased.ids])
        except Unavailable as error:
            _LOG.warning(
                "%s; %d items were claimed for a caller that left: they wait for their lease to end",
                error,
                len(leased.ids),
            )
