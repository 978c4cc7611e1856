"""The Submitter: checks, admits, stores, and answers only then (ATF's submission path in front of the store)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..foundation.clock import Clock
from ..model.errors import InvalidRequest, Overloaded, StoreFull, Unavailable
from ..stores.queue.intake import NewItem, QueueIntake, Submitted
from ..wire.v1 import gateway_pb2 as pb
from .admission import Admission
from .config import GatewayConfig
from .known_functions import KnownFunctions
from .rules.highest_priority import HighestPriorities
from .rules.recent_refusals import Refusals
from .spooling import Spooler
from .submission import SubmissionRule
from .submission_columns import WorkloadColumns
from .submission_measures import ACCEPTED, REFUSED, SubmissionMeasures
from .tenant_room import TenantRoom

#: Workloads of a request that are checked in one turn of the event loop (about a millisecond): one by one, in columns.
PART, COLUMN = 250, 500


class Submitter:
    """Answers Submit. After `close` it refuses, so that what is inside can finish. With a `spooler` it goes on while
    the store is away."""

    def __init__(
        self,
        config: GatewayConfig,
        queue: QueueIntake,
        functions: KnownFunctions,
        clock: Clock,
        refusals: Refusals,
        spooler: Spooler | None = None,
        seen: SubmissionMeasures | None = None,
        highest: HighestPriorities | None = None,
        room: TenantRoom | None = None,
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._refusals = refusals
        self._spooler = spooler
        self._rule = SubmissionRule(config, functions, highest)
        self._admission = Admission(config.submitting_items, config.submitting_bytes)
        self._room = room
        self._closed = False
        self.seen = SubmissionMeasures(clock) if seen is None else seen

    @property
    def inside(self) -> int:
        """Number of workloads that are being stored."""
        return self._admission.inside[0]

    def close(self) -> None:
        """Refuses submissions from now on."""
        self._closed = True

    async def submit(self, request: pb.SubmitRequest) -> pb.SubmitReply:
        """Stores all workloads durably, or none."""
        if self._closed:
            raise Unavailable("the gateway is shutting down; try again in a moment")
        items = await self._checked(request)
        if not items:
            return pb.SubmitReply()
        count, size = len(items), sum([len(item.payload) for item in items])
        began = self._clock.monotonic()
        try:
            stored, spooled = await self._admitted(items, count, size)
        except Unavailable as error:
            self.seen.ended(items, (), self._clock.monotonic() - began, REFUSED)
            if isinstance(error, Overloaded | StoreFull):
                self._refusals.note(str(error), self._clock.wall())
            raise
        self.seen.ended(items, [each.id for each in stored], self._clock.monotonic() - began, ACCEPTED)
        reply = pb.SubmitReply(ids=[each.id for each in stored], spooled=spooled)
        # A known submission id means that this very call was heard before, so it is no duplicate.
        workloads = request.workloads
        for index, each in enumerate(stored):
            if each.duplicate and workloads and workloads[index].dedupe_key:
                reply.duplicates.append(index)
        return reply

    async def _admitted(self, items: Sequence[NewItem], count: int, size: int) -> tuple[list[Submitted], bool]:
        if self._room is not None:
            self._room.check(items)
        self._admission.enter(count, size)
        started = self._clock.monotonic()
        try:
            return await self._store(items)
        finally:
            self._admission.leave(count, size, self._clock.monotonic() - started)

    async def _checked(self, request: pb.SubmitRequest) -> list[NewItem]:
        """The items of a request, checked part by part; small requests get a turn between two parts."""
        now, items = self._clock.wall(), list[NewItem]()
        if request.HasField("alike"):
            if request.workloads:
                raise InvalidRequest("workloads and alike are both given: expected one of them")
            columns = WorkloadColumns(self._rule, request.alike, now)
            for start in range(0, columns.count, COLUMN):
                if start:
                    await asyncio.sleep(0)
                items += columns.items(start, start + COLUMN)
            return items
        workloads = request.workloads
        self._rule.check_count(len(workloads))
        for start in range(0, len(workloads), PART):
            if start:
                await asyncio.sleep(0)
            items += self._rule.items(workloads[start : start + PART], now, start, len(workloads))
        return items

    async def _store(self, items: Sequence[NewItem]) -> tuple[list[Submitted], bool]:
        if self._spooler is None:
            return await self._queue.submit(items), False
        return await self._spooler.submit(items)
