"""Waits of callers for the ends of workloads and jobs. Those of one kind share the looks at all that is waited for, so
that a wait costs the store no call of its own, and only those wake whose wait is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel
from ..model.errors import Overloaded, TailraceError, Unavailable

T = TypeVar("T")

_LOG = logging.getLogger("tailrace.gateway")


class SharedWaits(Generic[T]):
    """Waits by id for `what` (a word for people), at most `most` at once. `look`: the looks that they share, for ever;
    `came` is set whenever somebody begins to wait.

    Invariant: every future in `_waiting` is not done, or its waiter is about to take it out.
    """

    def __init__(self, what: str, most: int, look: Callable[[], Coroutine[Any, Any, None]], duties: Duties) -> None:
        self.came = asyncio.Event()
        self._what = what
        self._most = most
        self._look = look
        self._duties = duties
        self._waiting: dict[str, set[asyncio.Future[T]]] = {}
        self._count = 0
        self._loop: asyncio.Task[None] | None = None
        self._closed = False

    def __contains__(self, id: str) -> bool:
        return id in self._waiting

    @property
    def ids(self) -> list[str]:
        """The ids that are waited for."""
        return list(self._waiting)

    def start(self) -> None:
        """Starts the looks."""
        self._loop = self._duties.begin(self._look(), f"gateway: waiting for {self._what}")

    def close(self) -> None:
        """Ends all waits with Unavailable, and refuses new ones."""
        self._closed = True
        for id in self.ids:
            self.fail(id, Unavailable("the gateway is shutting down; ask again in a moment"))

    async def stop(self) -> None:
        """Ends the looks. Harmless twice."""
        self.close()
        if self._loop is not None:
            await cancel(self._loop)
            self._loop = None

    async def over(self, id: str, within: float) -> T:
        """Returns the end that `tell` tells. Raises TimeoutError after so many seconds, Overloaded, and Unavailable."""
        if self._closed:
            raise Unavailable("the gateway is shutting down; ask again in a moment")
        if self._count >= self._most:
            raise Overloaded(
                f"{self._count} calls wait for {self._what} already, the most that this gateway allows "
                "(`waiting_results`): ask for the status now and then instead"
            )
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        futures = self._waiting.setdefault(id, set())
        futures.add(future)
        self._count += 1
        self.came.set()
        try:
            async with asyncio.timeout(within):
                return await future
        finally:
            self._count -= 1
            futures.discard(future)
            if not futures and self._waiting.get(id) is futures:
                del self._waiting[id]

    def tell(self, id: str, end: T) -> None:
        """Ends the waits for an id."""
        for future in self._waiting.pop(id, ()):
            if not future.done():
                future.set_result(end)

    def fail(self, id: str, error: TailraceError) -> None:
        """Ends the waits for an id with an error."""
        for future in self._waiting.pop(id, ()):
            if not future.done():
                future.set_exception(error)

    def looked_in_vain(self, error: Exception) -> None:
        """Logs that a look failed, unless that may be: the next one may succeed, and those who wait have a bound of
        their own."""
        if not isinstance(error, TailraceError):
            _LOG.error("looking at %s failed", self._what, exc_info=error)
