"""Calls about one workload: look at its content, and change its due time or priority while it waits."""

from __future__ import annotations

import logging

from ..foundation.clock import Clock
from ..model.errors import InvalidRequest
from ..model.one_item import ENDED, EXPIRES, UNKNOWN
from ..model.status import WorkloadStatus
from ..stores.queue.items import NOW, ItemContent, QueueItems, Reschedule
from ..stores.queue.lookup import QueueLookup
from ..stores.queue.queue import Queue
from ..stores.spool.spool import PREFIX
from ..wire.convert import headers_to_wire
from ..wire.gateway_messages import status_to_wire
from ..wire.stores import ANSWER_BYTES
from ..wire.v1 import gateway_pb2 as pb
from .config import GatewayConfig
from .rules.highest_priority import HighestPriorities
from .rules.item_refusals import is_of_stream, not_shown, of_stream, why
from .shown_status import shown_status
from .spooled_ids import SpooledIds
from .spooling import Spooler
from .submission import due_time, rank_of, too_urgent

_LOG = logging.getLogger("tailrace.gateway")


class ItemDesk:
    """Answers Reschedule and Peek."""

    def __init__(
        self,
        config: GatewayConfig,
        queue: Queue,
        clock: Clock,
        spooler: Spooler | None,
        highest: HighestPriorities,
    ) -> None:
        self._config = config
        self._highest = highest
        self._items: QueueItems = queue
        self._lookup: QueueLookup = queue
        self._clock = clock
        self._spooler = spooler
        self._spooled = SpooledIds(spooler, clock)

    async def reschedule(self, request: pb.RescheduleRequest) -> pb.RescheduleReply:
        """Changes the due time or priority of a waiting workload, or explains why it does not."""
        change = self._change(request)
        await self._check_rank(change)
        id, outcome = await self._changed(change)
        [status] = await self._statuses(id)
        content = await self._content(id, 0) if outcome == EXPIRES else None
        expires_at = 0.0 if content is None else content.expires_at
        _LOG.info("%s asked for another moment or priority of %s: %s", request.who or "somebody", id, outcome)
        reason = why(outcome, status, expires_at, self._clock.wall())
        return pb.RescheduleReply(outcome=outcome, why=reason, status=status_to_wire(id, status))

    def _change(self, request: pb.RescheduleRequest) -> Reschedule:
        if is_of_stream(request.id):
            raise InvalidRequest(of_stream(request.id))
        due, priority = None, None
        if request.HasField("delay") or request.HasField("at"):
            at = request.at if request.HasField("at") else None
            due = due_time(request.delay, at, self._config.max_delay, self._clock.wall()) or NOW
        if request.HasField("priority"):
            priority = rank_of(request.priority)
        if due is None and priority is None:
            raise InvalidRequest("nothing is to be changed: expected a delay, a time or a priority")
        return Reschedule(request.id, due, priority)

    async def _check_rank(self, change: Reschedule) -> None:
        """Raises InvalidRequest for a priority above the highest one of the function and tenant."""
        if change.priority is None:
            return
        [name], _ = await self._spooled.resolve([change.id])
        [status] = await self._statuses(name)
        if status is not None:
            highest = self._highest.of(status.function, status.kind.tenant)
            if change.priority < highest:
                raise InvalidRequest(too_urgent(change.priority, highest, status.function, status.kind.tenant))

    async def _changed(self, change: Reschedule) -> tuple[str, str]:
        """Makes the change. Returns the workload's present id, and the outcome."""
        id = change.id
        if self._spooler is not None and id.startswith(PREFIX):
            outcome = await self._spooler.reschedule(change)
            if outcome != UNKNOWN:
                return id, outcome
            [name], statuses = await self._spooled.resolve([id])
            if name in statuses:
                return name, UNKNOWN if statuses[name] is None else ENDED
            id = name
        [outcome] = await self._items.reschedule([change._replace(id=id)])
        return id, outcome

    async def peek(self, request: pb.PeekRequest) -> pb.PeekReply:
        """The content of a workload that has not ended. Raises InvalidRequest for any other, with its state."""
        if is_of_stream(request.id):
            raise InvalidRequest(of_stream(request.id))
        [name], _ = await self._spooled.resolve([request.id])
        content = await self._content(name, min(request.max_bytes, ANSWER_BYTES))
        [status] = await self._statuses(name)
        if content is None or status is None:
            raise InvalidRequest(not_shown(request.id, status))
        return pb.PeekReply(
            status=status_to_wire(name, status),
            payload=content.payload,
            size=content.size,
            key=content.key,
            headers=headers_to_wire(content.headers),
            expires_at=content.expires_at,
            behind=content.behind,
        )

    async def _content(self, id: str, max_bytes: int) -> ItemContent | None:
        if self._spooler is not None and id.startswith(PREFIX):
            return await self._spooler.peek(id, max_bytes)
        return await self._items.peek(id, max_bytes)

    async def _statuses(self, id: str) -> list[WorkloadStatus | None]:
        _, spooled = await self._spooled.resolve([id])
        if id in spooled:
            return [spooled[id]]
        return [None if each is None else shown_status(each) for each in await self._lookup.status([id])]
