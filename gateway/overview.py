"""What rests where: for live views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..sdk.model.overview import Overview
from ..sdk.wire.gateway_messages import overview_to_wire
from ..sdk.wire.v1 import gateway_pb2 as pb
from ..stores.dead_letters.dead_letters import DeadLetters
from ..stores.queue.queue import Queue


async def no_parts() -> Overview:
    """For a gateway that knows of no tailers and no delay streams."""
    return Overview()


class OverviewDesk:
    """Answers Overview. `parts` tells of the tailers and delay streams; the stores are counted here."""

    def __init__(self, queue: Queue, dead_letters: DeadLetters, parts: Callable[[], Awaitable[Overview]]) -> None:
        self._queue = queue
        self._dead_letters = dead_letters
        self._parts = parts

    async def overview(self, request: pb.OverviewRequest) -> pb.OverviewReply:
        """Everything now."""
        whole = replace(
            await self._parts(), queue=await self._queue.counts(), dead_letters=await self._dead_letters.count()
        )
        return overview_to_wire(whole)
