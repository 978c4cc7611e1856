"""Waits for the ends of trees. All of them share one look at the trees that are waited for, and only those wake whose
tree is over, so that a wait costs the store no call of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel
from ..model.errors import Overloaded, TailraceError, Unavailable
from .rules.look_pause import look_pause

_LOG = logging.getLogger("tailrace.gateway")


class JobWaits:
    """Waits of callers, at most `most` at once. `still_open`: tells which of some trees are not over.

    Invariant: every future in `_waiting` is not done, or its waiter is about to take it out.
    """

    def __init__(self, still_open: Callable[[Sequence[str]], Awaitable[list[str]]], most: int, duties: Duties) -> None:
        self._still_open = still_open
        self._most = most
        self._duties = duties
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._count = 0
        self._came = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._closed = False

    def start(self) -> None:
        """Starts the looks that all waits share."""
        self._loop = self._duties.begin(self._look(), "gateway: waiting for jobs")

    def close(self) -> None:
        """Ends all waits with Unavailable, and refuses new ones."""
        self._closed = True
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(Unavailable("the gateway is shutting down; ask again in a moment"))

    async def stop(self) -> None:
        """Ends the looks. Harmless twice."""
        self.close()
        if self._loop is not None:
            await cancel(self._loop)
            self._loop = None

    async def over(self, tree: str, within: float) -> None:
        """Returns when a tree is over or unknown, or after so many seconds. Raises Overloaded and Unavailable."""
        if self._closed:
            raise Unavailable("the gateway is shutting down; ask again in a moment")
        if self._count >= self._most:
            raise Overloaded(
                f"{self._count} calls wait for jobs already, the most that this gateway allows (`waiting_results`): "
                "ask for the status now and then instead"
            )
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        futures = self._waiting.setdefault(tree, set())
        futures.add(future)
        self._count += 1
        self._came.set()
        try:
            async with asyncio.timeout(within):
                await future
        except TimeoutError:
            return
        finally:
            self._count -= 1
            futures.discard(future)
            if not futures and self._waiting.get(tree) is futures:
                del self._waiting[tree]

    async def _look(self) -> None:
        while True:
            self._came.clear()
            if not self._waiting:
                await self._came.wait()
            await asyncio.sleep(look_pause(len(self._waiting)))
            asked = list(self._waiting)
            try:
                left = set(await self._still_open(asked)) if asked else set()
            except Exception as error:  # the next look may succeed, and those who wait have their own bound
                if not isinstance(error, TailraceError):
                    _LOG.exception("looking at jobs failed")
                continue
            for tree in asked:
                if tree not in left:
                    for future in self._waiting.pop(tree, ()):
                        if not future.done():
                            future.set_result(None)
