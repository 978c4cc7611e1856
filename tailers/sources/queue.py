"""The platform's own queue as a source: claims, renewals and settlements go to the store as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from ...foundation.config import Name
from ...model.claim import Leased, Renewed, ResultSettlement, Settle, State
from ...model.demand import Demand
from ...sdk.source import Capabilities, SourceKind
from ...stores.queue.queue import Queue, Reschedule
from ..registry import Environment

#: The most due items of one lane that are counted at each heartbeat.
MOST_DUE = 1000


class QueueOptions(BaseModel):
    """Workloads of the queue that a tailer takes. A tailer has a window, credit and claims of its own, so a flood of
    other workloads does not keep it waiting.

    functions   only workloads of these functions; default: all
    without     all workloads except those of these functions, which have tailers of their own
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    functions: tuple[Name, ...] = ()
    without: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.functions and self.without:
            raise PydanticCustomError("functions", "functions and without are both given: expected one of them")
        return self

    def takes(self, function: str) -> bool:
        """Whether this tailer takes workloads of a function."""
        return function in self.functions if self.functions else function not in self.without


class QueueStoreSource:
    """Implements `sdk.source.QueueSource` over `stores.queue.queue.Queue`."""

    capabilities = Capabilities()

    def __init__(self, queue: Queue, options: QueueOptions | None = None) -> None:
        self._queue = queue
        self._options = options or QueueOptions()
        self._all = not (self._options.functions or self._options.without)

    async def open(self) -> None:
        """Does nothing: the store is open already."""

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        if not self._all:
            takes = self._options.takes
            demand = replace(demand, cells={cell: n for cell, n in demand.cells.items() if takes(cell.function)})
            if not demand.cells:  # no worker runs any of them now
                await asyncio.sleep(wait)
                return None
        return await self._queue.lease(demand, seconds, wait)

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        return await self._queue.renew(ids, fence, seconds, phase)

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        return await self._queue.settle(fence, succeeded, others)

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        return await self._queue.settle_results(fence, succeeded, others)

    async def waiting(self) -> int:
        if not self._all:
            return sum((await self.due()).values())
        counts = await self._queue.counts()
        return counts.get(State.NEW.label, 0) + counts.get(State.RETRIABLE_FAILURE.label, 0)

    async def due(self) -> dict[str, int]:
        due = await self._queue.due(MOST_DUE)
        return due if self._all else {name: count for name, count in due.items() if self._options.takes(name)}

    async def put_first(self, id: str, before: float) -> None:
        """Has a waiting item go before all that were due at that time or later (wall clock)."""
        await self._queue.reschedule([Reschedule(id, max(1e-6, before - 1e-3))])

    async def close(self) -> None:
        """Does nothing: the store belongs to the process, and stays open."""


def build(options: QueueOptions, environment: Environment) -> QueueStoreSource:
    """The source over this process's queue."""
    return QueueStoreSource(environment.queue, options)


KIND = SourceKind(
    "queue", "queue", QueueOptions, build, QueueStoreSource.capabilities, description="workloads submitted by clients"
)
