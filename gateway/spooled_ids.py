"""Ids of spooled workloads → their ids in the queue, or their statuses while they are not there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..foundation.clock import Clock
from ..model.claim import State
from ..model.status import SPOOLED, WorkloadStatus
from ..stores.spool.spool import PREFIX, Spooled
from .spooling import Spooler

#: The reason of a workload that was cancelled while it was spooled.
ENDS_THERE = "it is cancelled once the store answers"
#: Seconds between looks at a spooled workload whose result a caller waits for.
LOOK = 0.1


class SpooledIds:
    """Resolves ids of spooled workloads; without a spooler every id is the queue's."""

    def __init__(self, spooler: Spooler | None, clock: Clock) -> None:
        self._spooler = spooler
        self._clock = clock

    async def resolve(self, ids: Sequence[str]) -> tuple[list[str], dict[str, WorkloadStatus | None]]:
        """Each id as the queue knows it, and the statuses of workloads that are not in the queue (under their own
        ids)."""
        own = [id for id in ids if id.startswith(PREFIX)]
        if self._spooler is None or not own:
            return list(ids), {}
        statuses: dict[str, WorkloadStatus | None] = {}
        names: dict[str, str] = {}
        for id, found in zip(own, await self._spooler.find(own), strict=True):
            if found is not None and found.became:
                names[id] = found.became
            else:
                statuses[id] = None if found is None else _status(found)
        return [names.get(id, id) for id in ids], statuses

    async def brought(self, id: str, wait: float) -> tuple[str, WorkloadStatus | None]:
        """Waits at most `wait` seconds for a workload to reach the queue. Returns its id there, and its status (or
        None) where it is not there."""
        until = self._clock.monotonic() + wait
        while True:
            [name], statuses = await self.resolve([id])
            status = statuses.get(id)
            if id not in statuses or status is None or status.ended or self._clock.monotonic() + LOOK > until:
                return name, status
            await asyncio.sleep(LOOK)

    async def cancel(self, ids: Sequence[str]) -> dict[str, str]:
        """Asks for the end of workloads that wait in the spool. Returns the outcome of each id of the spool that is not
        in the queue: `requested`, `ended` or `unknown`."""
        own = [id for id in ids if id.startswith(PREFIX)]
        if self._spooler is None or not own:
            return {}
        taken = dict(zip(own, await self._spooler.cancel(own), strict=True))
        _, statuses = await self.resolve(own)
        return {
            id: "requested" if taken[id] else "ended" if status is not None else "unknown"
            for id, status in statuses.items()
        }


def _status(found: Spooled) -> WorkloadStatus:
    state, reason = SPOOLED, found.reason
    if reason:
        state = State.CANCELLED.label if found.cancelled else State.FATAL_FAILURE.label
    elif found.cancelled:
        reason = ENDS_THERE
    return WorkloadStatus(found.id, state, found.kind, created_at=found.created_at, due_at=found.due, reason=reason)
