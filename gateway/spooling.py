"""The spooler (store and forward): takes submissions while the store is away, and brings them there in order once it
answers.

Crashes: a row leaves the spool only after the queue is known to have its item, so a crash between the two brings the
item there again, and the queue recognises it by its dedupe key. Every submission is in at least one of the two.

A client may leave while its items are being spooled. They are spooled all the same, and until they are counted no
ordered submission overtakes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel, end_all
from ..model.errors import Overloaded, StoreFull, TailraceError, Unavailable, UserError
from ..model.overview import SpoolOverview
from ..stores.queue.admission import SUBMISSION_PREFIX
from ..stores.queue.intake import NewItem, QueueIntake, Submitted
from ..stores.queue.items import ItemContent, QueueItems, Reschedule
from ..stores.spool.spool import Spool, Spooled, SpooledItem
from .config import GatewayConfig
from .rules.spool import SpoolRule, SpoolState, SubmissionWay

#: Workloads and bytes that go from the spool to the queue at once.
BATCH_ITEMS, BATCH_BYTES = 500, 1 << 20
#: Seconds by which a workload that was cancelled in the spool is due later in the queue, so that it does not start
#: before it is cancelled there.
PUT_OFF = 86_400.0

_LOG = logging.getLogger("tailrace.gateway")


class SpooledInto(QueueIntake, QueueItems, Protocol):
    """The part of a queue that a spool before it needs."""

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        """Cancels items, like `QueueLookup.cancel`."""


class Spooler:
    """A queue with a spool before it: `submit` also works while the queue's store is away.

    patience  seconds that the store gets to answer a submission before it counts as away
    """

    def __init__(
        self, queue: SpooledInto, spool: Spool, rule: SpoolRule, clock: Clock, patience: float, duties: Duties
    ) -> None:
        self._duties = duties
        self._queue = queue
        self._spool = spool
        self._rule = rule
        self._clock = clock
        self._patience = patience
        self._filled = asyncio.Event()
        self._moving = asyncio.Lock()  # held while workloads go to the queue, so that none is cancelled meanwhile
        self._drain: asyncio.Task[None] | None = None
        self._keeping: set[asyncio.Task[list[Submitted]]] = set()
        self._taken = self._brought = 0  # since the start
        self._shared = False  # items of tenants were seen: the first of each call is looked at

    async def start(self) -> None:
        """Begins to bring spooled workloads to the queue, those of an earlier run too. The spool is open."""
        await self._look()
        if self._rule.items:
            _LOG.info("%d workloads are spooled from an earlier run", self._rule.items)
        self._drain = self._duties.begin(self._bring(), "gateway: draining the spool")

    async def stop(self) -> None:
        """Ends the drain; spooled workloads stay for the next run. Writes to the spool under way are cut off."""
        await end_all(self._keeping)
        drain, self._drain = self._drain, None
        if drain is not None:
            await cancel(drain)

    async def submit(self, items: Sequence[NewItem]) -> tuple[list[Submitted], bool]:
        """Stores all items or none, and returns whether they were spooled. Raises the queue's own errors, and
        Overloaded where the spool is full."""
        self._shared = self._shared or bool(items[0].kind.tenant)
        ordered = any(item.key or (item.dedupe_key and not _is_token(item.dedupe_key)) for item in items)
        asked = False
        if self._rule.way(ordered) is SubmissionWay.STORE:
            try:
                async with asyncio.timeout(self._patience):
                    stored = await self._queue.submit(items)
                self._rule.answered()
                return stored, False
            except (Overloaded, StoreFull):
                raise
            except (Unavailable, TimeoutError) as error:
                asked = True
                if not self._rule.may_spool(asked, all(item.dedupe_key for item in items)):
                    if isinstance(error, Unavailable):
                        raise
                    raise Unavailable(f"the store did not answer within {self._patience:g} seconds") from None
                self._failed(error)
        if not self._rule.may_spool(asked, True):
            raise Unavailable("the store is away")
        if any(item.on_done is not None for item in items):
            raise Unavailable("the store is away, and workloads with on_done are not spooled: try again in a moment")
        return await self._spooled(items), True

    async def _spooled(self, items: Sequence[NewItem]) -> list[Submitted]:
        # An item without a dedupe key gets a token of the gateway's, since it may be brought to the queue twice.
        known = [
            item if item.dedupe_key else replace(item, dedupe_key=SUBMISSION_PREFIX + uuid.uuid4().hex)
            for item in items
        ]
        self._rule.entering += len(known)
        task = asyncio.create_task(self._keep(known), name="gateway: spooling")
        self._keeping.add(task)
        task.add_done_callback(self._kept)
        return await asyncio.shield(task)

    async def _keep(self, known: Sequence[NewItem]) -> list[Submitted]:
        try:
            answers = await self._spool.add(known, self._shared)
            await self._look()
        finally:
            self._rule.entering -= len(known)
        self._taken += sum(not each.duplicate for each in answers)
        self._filled.set()
        return answers

    def _kept(self, task: asyncio.Task[list[Submitted]]) -> None:
        self._keeping.discard(task)
        if not task.cancelled():
            task.exception()  # raised at the caller, if there still is one

    async def _look(self) -> None:
        held = await self._spool.held()
        self._rule.holds(held.items, held.size)

    async def _bring(self) -> None:
        """Brings spooled workloads to the queue, for ever."""
        while True:
            if self._rule.state is SpoolState.CLEAR:
                self._filled.clear()
                await self._filled.wait()
                if self._rule.away:  # it failed a moment ago
                    await asyncio.sleep(self._rule.failed(random.random))
            try:
                async with self._moving:
                    await self._bring_some()
            except (Unavailable, TimeoutError) as error:
                await asyncio.sleep(self._failed(error))
            except Exception:
                _LOG.exception("bringing spooled workloads to the store failed; trying again")
                await asyncio.sleep(self._rule.failed(random.random))

    async def _bring_some(self) -> None:
        batch = await self._spool.next(BATCH_ITEMS, BATCH_BYTES)
        if batch:
            try:
                await self._bring_batch(batch)
            except UserError:  # find the wrong one: each alone, in the same order
                for each in batch:
                    try:
                        await self._bring_batch([each])
                    except UserError as error:
                        _LOG.error("the queue refuses %s (%s): %s", each.id, each.item.kind.function, error)
                        await self._spool.refuse(each.id, f"the queue refused it: {error}")
        self._rule.answered()
        before = self._rule.items
        await self._look()
        if before and not self._rule.items:
            _LOG.info("all spooled workloads are in the store")

    async def _bring_batch(self, batch: Sequence[SpooledItem]) -> None:
        async with asyncio.timeout(self._patience):
            stored = await self._queue.submit([self._sent(each) for each in batch])
            await self._move_those_there(batch, stored)
            cancelled = [answer.id for each, answer in zip(batch, stored, strict=True) if each.cancelled]
            if cancelled:
                await self._queue.cancel(cancelled)
        await self._spool.became([each.id for each in batch], [each.id for each in stored])
        self._brought += len(batch)

    def _sent(self, each: SpooledItem) -> NewItem:
        """The item to submit. A cancelled one goes to the queue too, which finds by its dedupe key whether it has it
        since a lost answer."""
        if not each.cancelled:
            return each.item
        return replace(each.item, due=max(each.item.due, self._clock.wall()) + PUT_OFF, expires_at=0.0)

    async def _move_those_there(self, batch: Sequence[SpooledItem], stored: Sequence[Submitted]) -> None:
        """Applies changes made in the spool to items that the queue had already, from a try that was not answered."""
        changes = [
            Reschedule(answer.id, each.item.due, each.item.kind.priority)
            for each, answer in zip(batch, stored, strict=True)
            if each.moved and answer.duplicate and not each.cancelled
        ]
        if changes:
            await self._queue.reschedule(changes)

    def _failed(self, error: Exception) -> float:
        """Notes that the store failed; returns the seconds until it is asked again."""
        if not self._rule.away:
            _LOG.warning(
                "the store is away, and submissions are spooled: %s", str(error) or "it did not answer in time"
            )
        return self._rule.failed(random.random)

    async def find(self, ids: Sequence[str]) -> list[Spooled | None]:
        """The spooled workloads of these ids of the spool; None for an unknown one."""
        return await self._spool.find(ids)

    async def cancel(self, ids: Sequence[str]) -> list[bool]:
        """Has workloads that wait in the spool cancelled in the queue, once they are there. Returns for each id whether
        it waited."""
        async with self._moving:
            return await self._spool.cancel(ids)

    async def reschedule(self, change: Reschedule) -> str:
        """Changes a workload that waits in the spool; returns `unknown` where it does not."""
        async with self._moving:
            [answer] = await self._spool.reschedule([change])
        return answer

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        """The content of a workload that waits in the spool; None: it does not."""
        return await self._spool.peek(id, max_bytes)

    async def overview(self) -> SpoolOverview:
        """The state of the spool, for operators."""
        oldest = 0.0
        with contextlib.suppress(TailraceError):
            oldest = await self._spool.oldest()
        return SpoolOverview(
            state=self._rule.state.value,
            items=self._rule.items,
            size=self._rule.size,
            age=max(0.0, self._clock.wall() - oldest) if oldest else 0.0,
            taken=self._taken,
            brought=self._brought,
            refused=await self._spool.refused(),
        )


def spool_rule(config: GatewayConfig) -> SpoolRule:
    """The rule of the spool, with the configured bounds."""
    return SpoolRule(config.spool_items, config.spool_bytes)


def _is_token(dedupe_key: str) -> bool:
    """Whether a dedupe key is only a client's token for repeats of its call, which implies no order."""
    return dedupe_key.startswith(SUBMISSION_PREFIX)
