"""The platform's own queue as a source: claims, renewals and settlements go to the store as they are."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from ...sdk.model.claim import Leased, Renewed, Settle, State
from ...sdk.model.demand import Demand
from ...sdk.source import Capabilities, SourceKind
from ...stores.queue.queue import Queue
from ..registry import Environment

#: Due items of one lane that are counted at each heartbeat.
MOST_DUE = 1000


class QueueOptions(BaseModel):
    """There is one queue; nothing to choose."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class QueueStoreSource:
    """Implements `sdk.source.QueueSource` over `stores.queue.queue.Queue`."""

    capabilities = Capabilities()

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def open(self) -> None:
        """The store is open already."""

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        return await self._queue.lease(demand, seconds, wait)

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        return await self._queue.renew(ids, fence, seconds, phase)

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        return await self._queue.settle(fence, succeeded, others)

    async def waiting(self) -> int:
        counts = await self._queue.counts()
        return counts.get(State.NEW.label, 0) + counts.get(State.RETRIABLE_FAILURE.label, 0)

    async def due(self) -> dict[str, int]:
        return await self._queue.due(MOST_DUE)

    async def close(self) -> None:
        """The store stays open; it belongs to the process."""


def build(options: QueueOptions, environment: Environment) -> QueueStoreSource:
    """The source over this process's queue."""
    return QueueStoreSource(environment.queue)


KIND = SourceKind(
    "queue", "queue", QueueOptions, build, QueueStoreSource.capabilities, description="workloads submitted by clients"
)
