"""The workers that run given items, for people: a gateway asks the scheduler beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ..model.errors import TailraceError
from ..wire.scheduler import SchedulerClient

#: Seconds that a scheduler gets to answer.
PATIENCE = 1.0


class AskedRunners:
    """Asks the scheduler at an address. Each call makes a client and closes it."""

    def __init__(self, scheduler: str) -> None:
        self._address = scheduler

    async def __call__(self, ids: Sequence[str]) -> Mapping[str, tuple[str, float]]:
        """Name of the worker that has an item, and when it was last heard of, by id; ids that no worker has are left
        out."""
        client = SchedulerClient(self._address)
        try:
            replies = await asyncio.gather(*(client.explain(id, PATIENCE) for id in ids), return_exceptions=True)
        finally:
            await client.close()
        found = {}
        for id, reply in zip(ids, replies, strict=True):
            if isinstance(reply, BaseException):
                if not isinstance(reply, TailraceError):
                    raise reply
            elif reply.worker:
                found[id] = (reply.worker, reply.heard_at)
        return found
