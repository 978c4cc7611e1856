"""The desk for statuses, results and searches of workloads, and for their cancellation.

All waits for results share one loop that reads statuses in batches, so that a wait costs the queue no task.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..model.errors import InvalidRequest, ResultGone, TailraceError
from ..model.reopening import MISSING
from ..model.status import CREATED_BY, HANDED_OUT, SPOOLED, SUCCESS, WorkloadStatus
from ..stores.queue.lookup import QueueLookup
from ..stores.results.results import Results
from ..wire.gateway_messages import status_to_wire
from ..wire.search_messages import search_from_wire
from ..wire.v1 import gateway_pb2 as pb
from .config import GatewayConfig
from .overview import Troubles, no_troubles
from .polling import Polling
from .shown_status import shown_status
from .spooled_ids import SpooledIds
from .spooling import Spooler
from .waits import SharedWaits

_LOG = logging.getLogger("tailrace.gateway")


#: Looks up runs: for each id that runs, the worker's name, and when it was last heard of (wall clock seconds).
Runners = Callable[[Sequence[str]], Awaitable[Mapping[str, tuple[str, float]]]]
#: Most ids whose worker is looked up for one request: a scheduler looks through all that it has for each.
MOST_RUNNERS = 20


async def no_runners(ids: Sequence[str]) -> Mapping[str, tuple[str, float]]:
    """An empty answer, for a gateway without a scheduler beside it."""
    return {}


class StatusDesk:
    """Answers Status, Find, Result and Cancel."""

    def __init__(
        self,
        config: GatewayConfig,
        queue: QueueLookup,
        results: Results,
        clock: Clock,
        spooler: Spooler | None,
        duties: Duties,
        runners: Runners = no_runners,
        troubles: Troubles = no_troubles,
    ) -> None:
        self._troubles = troubles
        self._runners = runners
        self._config = config
        self._queue = queue
        self._results = results
        self._clock = clock
        self._spooled = SpooledIds(spooler, clock)
        self._polling: Polling[str] = Polling()
        self.waits = SharedWaits[WorkloadStatus]("results", config.waiting_results, self._poll, duties)

    async def status(self, request: pb.StatusRequest) -> pb.StatusReply:
        """The status of each id; an unknown one is answered as such."""
        ids = self._bounded(list(request.ids))
        names, spooled = await self._spooled.resolve(ids)
        asked = [name for name in names if name not in spooled]
        found = dict(zip(asked, await self._queue.status(asked), strict=True)) if asked else {}
        statuses = [
            spooled[name] if name in spooled else None if (each := found[name]) is None else shown_status(each)
            for name in names
        ]
        if request.tries and asked:
            tries = await self._queue.tries(asked)
            statuses = [each if each is None else replace(each, tries=tries.get(each.id, ())) for each in statuses]
            statuses = await self._with_creators(await self._with_runners(statuses))
        messages = [status_to_wire(name, each) for name, each in zip(names, statuses, strict=True)]
        await self._say_what_is_lost(messages)
        return pb.StatusReply(statuses=messages)

    async def _say_what_is_lost(self, messages: Sequence[pb.WorkloadStatus]) -> None:
        """Gives unknown workloads the reason why they may be missing, where a store is known to have lost some."""
        unknown = [each for each in messages if not each.known]
        if unknown:
            lost = next((each.what for each in await self._troubles() if each.what.startswith(MISSING)), "")
            for each in unknown:
                each.reason = lost

    async def _with_runners(self, statuses: list[WorkloadStatus | None]) -> list[WorkloadStatus | None]:
        """Adds the workers that run items. A scheduler that does not answer adds none."""
        out = [each.id for each in statuses if each is not None and each.state in HANDED_OUT][:MOST_RUNNERS]
        if not out:
            return statuses
        try:
            running = await self._runners(out)
        except TailraceError:
            return statuses
        return [
            replace(each, worker=running[each.id][0], heard_at=running[each.id][1])
            if each is not None and each.id in running
            else each
            for each in statuses
        ]

    async def _with_creators(self, statuses: list[WorkloadStatus | None]) -> list[WorkloadStatus | None]:
        """Adds the names of submitters to workloads that have not ended and have such a header."""
        live = [each.id for each in statuses if each is not None and not each.ended and each.state != SPOOLED]
        found = await self._queue.headers(live) if live else {}
        creators = {id: dict(headers).get(CREATED_BY, "") for id, headers in found.items()}
        return [
            each if each is None or not creators.get(each.id) else replace(each, created_by=creators[each.id])
            for each in statuses
        ]

    async def find(self, request: pb.FindRequest) -> pb.FindReply:
        """A page of the workloads that fit a search."""
        page = await self._queue.find(search_from_wire(request))
        found = [status_to_wire(each.id, shown_status(each)) for each in page.statuses]
        return pb.FindReply(statuses=found, after=page.after)

    async def cancel(self, request: pb.CancelRequest) -> pb.CancelReply:
        """Cancels workloads that have not started, and has the workers of the others told."""
        given = self._bounded(list(request.ids))
        spooled = await self._spooled.cancel(given)
        ids, _ = await self._spooled.resolve(given)
        there = [id for id in ids if id not in spooled]
        told = spooled | dict(zip(there, await self._queue.cancel(there), strict=True)) if there else spooled
        outcomes = [told[id] for id in ids]
        _LOG.info("%s asked for the end of %d workloads (the first: %s)", request.who or "somebody", len(ids), ids[:1])
        return pb.CancelReply(outcomes=outcomes)

    async def result(self, request: pb.ResultRequest) -> pb.ResultReply:
        """Waits until a workload has ended, up to `wait` seconds, and answers with its status and value."""
        id, wait = request.id, request.wait
        if not 0 <= wait < math.inf:
            raise InvalidRequest(f"wait is {wait}: expected zero or more seconds")
        wait = min(wait, self._config.longest_wait)
        id, status = await self._spooled.brought(id, wait)
        if status is None:
            [found] = await self._queue.status([id])
            status = None if found is None else shown_status(found)
            if status is not None and not status.ended and wait > 0:
                status = await self._ended(id, status, wait)
        reply = pb.ResultReply(status=status_to_wire(id, status))
        if status is None:  # a stream's item: its tailer keeps its result, and no queue knows it
            value = await self._results.get(id)
            if value is not None:
                reply.status.known, reply.status.state = True, SUCCESS
                reply.has_result, reply.result = True, value
        elif status.state == SUCCESS:
            value = await self._results.get(id)
            if value is not None:
                reply.has_result = True
                reply.result = value
            elif await self._results.gone(id):
                raise ResultGone(
                    f"the result of {id} was pushed out by newer ones: it ended as a success, and what it returned is "
                    "not known any more. Raise `result_bytes` in stores.yaml, fetch results sooner, or return a "
                    "reference to what is large"
                )
        await self._say_what_is_lost([reply.status])
        return reply

    async def _ended(self, id: str, status: WorkloadStatus, wait: float) -> WorkloadStatus:
        """The status at its end, or the present one after `wait` seconds."""
        if id not in self.waits:
            self._polling.add(id, self._clock.monotonic())
        try:
            return await self.waits.over(id, wait)
        except TimeoutError:
            [found] = await self._queue.status([id])
            return status if found is None else shown_status(found)
        finally:
            if id not in self.waits:
                self._polling.remove(id)

    async def _poll(self) -> None:
        """Reads the statuses that are waited for, in batches, each workload at its own pace."""
        while True:
            due = self._polling.next()
            if due is None:
                self.waits.came.clear()
                await self.waits.came.wait()
                continue
            now = self._clock.monotonic()
            if due > now:
                self.waits.came.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(due - now):
                        await self.waits.came.wait()
                continue
            ids = self._polling.take(now, self._config.max_batch)
            try:
                found = await self._queue.status(ids)
            except Exception as error:
                self.waits.looked_in_vain(error)
                continue
            for id, each in zip(ids, found, strict=True):
                shown = None if each is None else shown_status(each)
                if shown is not None and not shown.ended:
                    continue
                self._polling.remove(id)
                if shown is None:
                    forgotten = f"workload {id} was forgotten while its result was waited for"
                    self.waits.fail(id, InvalidRequest(forgotten))
                else:
                    self.waits.tell(id, shown)

    def _bounded(self, ids: list[str]) -> list[str]:
        if len(ids) > self._config.max_batch:
            raise InvalidRequest(f"{len(ids)} ids in one request: at most {self._config.max_batch} are taken")
        return ids
