"""Capacity of the queue on PostgreSQL. Live items are counted once a second, beside the submissions, so several nodes
may exceed the bound by as many items as they take between two counts."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ....foundation.clock import Clock
from ....model.errors import Overloaded, TailraceError
from ..lifecycle import LEASED, WAITING

#: Seconds for which a count is good.
COUNTED = 1.0


class Capacity:
    """Room for more items. `most`: the bound on live items. `counts` returns the items by the state's name. `run`
    starts a count that nobody waits for."""

    def __init__(
        self,
        most: int,
        counts: Callable[[], Awaitable[dict[str, int]]],
        clock: Clock,
        run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._most = most
        self._counts = counts
        self._clock = clock
        self._run = run
        self._live = self._taken = 0
        self._counted = -math.inf
        self._counting: asyncio.Task[None] | None = None

    async def look(self, count: int) -> None:
        """Raises Overloaded if there is no room for so many more items. If there is, a new count runs beside when one
        is due."""
        if self._counted == -math.inf or self._live + count > self._most:
            await self._count()
        elif abs(self._clock.monotonic() - self._counted) > COUNTED and (
            self._counting is None or self._counting.done()
        ):
            self._counting = self._run(self._count_if_it_can())
        if self._live + count > self._most:
            raise Overloaded(
                f"the queue holds {self._live} workloads and takes at most {self._most}; try again later", 5.0
            )

    def taken(self, count: int) -> None:
        """Notes that so many more items are live."""
        self._live += count
        self._taken += count

    async def _count_if_it_can(self) -> None:
        with contextlib.suppress(TailraceError):  # submissions get errors of their own
            await self._count()

    async def _count(self) -> None:
        now, taken = self._clock.monotonic(), self._taken
        counts = await self._counts()
        # The count may include items taken meanwhile. They are added again: better counted twice for a moment than not.
        self._live = sum(counts[state.label] for state in WAITING | LEASED) + self._taken - taken
        self._counted = now
