"""What rests where, and what became of it: for live views and for audits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..sdk.model.audit import Audit
from ..sdk.model.errors import InvalidRequest, Unavailable
from ..sdk.model.overview import Overview
from ..sdk.wire.audit_messages import audit_to_wire
from ..sdk.wire.gateway_messages import overview_to_wire
from ..sdk.wire.v1 import gateway_pb2 as pb
from ..stores.dead_letters.dead_letters import DeadLetters
from ..stores.queue.queue import Queue
from .spooling import Spooler

#: Seconds that a store apart gets to count, so that a gateway with a spool tells of that while the store is away.
LONGEST_COUNT = 3.0


async def no_parts() -> Overview:
    """For a gateway that knows of no tailers and no delay streams."""
    return Overview()


#: The audits of a tailer by name, of one partition or all, of a range of positions or all.
Audits = Callable[[str, str | None, tuple[int, int] | None], Awaitable[list[Audit]]]


async def no_audits(tailer: str, partition: str | None, span: tuple[int, int] | None) -> list[Audit]:
    """For a gateway that knows of no tailers."""
    raise InvalidRequest(f"this gateway has no tailers beside it, so it cannot audit {tailer!r}")


class OverviewDesk:
    """Answers Overview and Audit. `parts` tells of the tailers and delay streams; the stores are counted here."""

    def __init__(
        self,
        queue: Queue,
        dead_letters: DeadLetters,
        parts: Callable[[], Awaitable[Overview]],
        audits: Audits,
        spooler: Spooler | None = None,
    ) -> None:
        self._queue = queue
        self._dead_letters = dead_letters
        self._parts = parts
        self._audits = audits
        self._spooler = spooler

    async def audit(self, request: pb.AuditRequest) -> pb.AuditReply:
        """What became of everything that a tailer's source had."""
        span = (request.first, request.end) if request.HasField("first") or request.HasField("end") else None
        partition = request.partition if request.HasField("partition") else None
        found = await self._audits(request.tailer, partition, span)
        return pb.AuditReply(audits=[audit_to_wire(audit) for audit in found])

    async def overview(self, request: pb.OverviewRequest) -> pb.OverviewReply:
        """Everything now. With a spool also while the store is away: what only the store knows is left out then."""
        if self._spooler is None:
            whole = replace(
                await self._parts(), queue=await self._queue.counts(), dead_letters=await self._dead_letters.count()
            )
            return overview_to_wire(whole)
        whole = Overview(spool=await self._spooler.overview())
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(LONGEST_COUNT):
                whole.queue = await self._queue.counts()
                whole.dead_letters = await self._dead_letters.count()
        with contextlib.suppress(Unavailable):
            parts = await self._parts()
            whole.tailers, whole.delay = parts.tailers, parts.delay
        return overview_to_wire(whole)
