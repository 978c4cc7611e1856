"""A client that brings work: submits to the queue and appends to the stream over the network, again until it is
answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from ...foundation.together import together
from ...model.errors import Overloaded, Unavailable, UnknownFunction
from ...model.schedule import CatchUp, Overlap, Schedule
from ...model.workload import Kind
from ...sdk.async_client import AsyncClient
from ...sdk.conversation import Conversation
from ...sdk.discovery import Found
from ...stores.log.log import Record
from ...stores.queue.queue import NewItem
from ...stores.remote import RemoteLog, RemoteQueue, RemoteSchedules
from ...stores.schedules.firing import begun
from ...stores.spool.spool import PREFIX
from .clock import EPOCH
from .host import here
from .parts import FUNCTION, GATEWAYS, QUEUE, work
from .plan import Item, Plan, Timed

T = TypeVar("T")

#: Further arguments of items, by the version of the function that they fit.
MORE: dict[str, dict[str, int]] = {"old": {}, "new": {"more": 1}, "neither": {"odd": 1}}
#: Seconds for which a submission whose answer was lost is made again: all of a story.
PATIENCE = 1000.0


class WorldClient:
    """A client of the world. `accepted`: the items that the platform said it has, by number, and the ids of those of
    the queue; `scheduled`: the schedules likewise, and the wall clock up to which none of their instants was due;
    `taken_back`: the ids that it asked to cancel; `began` and `times`: when it first brought each, and when it was
    told, true seconds."""

    def __init__(self, plan: Plan, store: str) -> None:
        self._plan = plan
        self._store = store
        self.accepted: dict[int, str] = {}
        self.scheduled: dict[int, float] = {}
        self.taken_back: set[str] = set()
        self.began: dict[int, float] = {}
        self.times: dict[int, float] = {}
        self._again: list[asyncio.Task[None]] = []
        self._put_back = -1.0  # when the queue was put back to an older copy, true seconds
        self._restores = any(fault.kind == "restore" for fault in plan.faults)

    async def main(self) -> None:
        """Runs the client's process."""
        queue, log = self._queue, self._log = RemoteQueue(self._store), RemoteLog(self._store)
        self._schedules = RemoteSchedules(self._store)
        streams = {item.source for item in self._plan.items} - {QUEUE}
        for stream in sorted(streams):
            await self._until_heard(partial(log.create, stream, 1))
        brought = [self._bring(item, queue, log) for item in self._plan.items]
        await together(*brought, *map(self._schedule, self._plan.schedules))

    async def _schedule(self, timed: Timed) -> None:
        """Makes a schedule, unless it is there: an answer may have been lost."""
        host = here()
        await asyncio.sleep(max(0.0, timed.at - host.world.now))

        async def put() -> float:
            now = host.clock.wall()
            schedule = Schedule(
                timed.name,
                FUNCTION,
                json.dumps({"n": timed.n}).encode(),
                cron=timed.cron,
                every=timed.every,
                overlap=Overlap(timed.overlap),
                catch_up=CatchUp(timed.catch_up),
                catch_up_max=timed.catch_up_max,
                grace=timed.grace,
                starts=EPOCH + timed.starts,
                until=EPOCH + timed.until,
                max_runs=timed.max_runs,
                created_at=now,
            )
            if await self._schedules.put(begun(schedule, now), 0):
                return now
            known = await self._schedules.get(timed.name)
            assert known is not None
            return known.schedule.created_at

        self.scheduled[timed.n] = await self._until_heard(put)
        self.times[timed.n] = host.world.now
        host.world.say(host.name, f"made the schedule {timed.name}")

    def schedule_again(self, since: float) -> None:
        """Makes every schedule again that was made after `since`, the time to which their store was put back."""
        for timed in self._plan.schedules:
            if timed.n in self.scheduled and self.times[timed.n] >= since:
                del self.scheduled[timed.n]
                self._again.append(asyncio.ensure_future(self._schedule(timed)))

    async def _bring(self, item: Item, queue: RemoteQueue, log: RemoteLog) -> None:
        host = here()
        await asyncio.sleep(max(0.0, item.at - host.world.now))
        payload = json.dumps({"n": item.n} | MORE[item.fits]).encode()
        began = self.began[item.n] = host.world.now
        if item.source == QUEUE:
            due = host.clock.wall() + item.delay if item.delay else 0.0
            new = NewItem(Kind(FUNCTION), payload, due=due, key=item.key, dedupe_key=f"n{item.n}")
            if self._plan.gateways:
                id_ = await self._submit(item)
            else:
                id_ = (await self._until_heard(lambda: queue.submit([new])))[0].id
        else:
            headers = [("priority", item.priority)] if item.priority else []
            headers += [("expires", f"{item.expires}s")] if item.expires else []
            id_ = ""
            record = Record(payload, item.key, tuple(headers))
            await self._until_heard(lambda: log.append(item.source, 0, [record]))
            if item.expires:
                host.journal.deadlines[item.n] = host.world.now + item.expires
        if item.source == QUEUE and self._put_back > began:  # what it was told may be of before that
            await self._bring(item, queue, log)
            return
        self.accepted[item.n] = id_
        self.times[item.n] = host.world.now
        host.world.say(host.name, f"brought item {item.n} to {item.source}")
        if id_.startswith(PREFIX):
            host.world.count("items spooled")
        if item.cancel:
            await self._cancel(item, id_, queue)

    async def _cancel(self, item: Item, id_: str, queue: RemoteQueue) -> None:
        """Takes an item back; it may have ended before."""
        host = here()
        await asyncio.sleep(item.cancel)
        self.taken_back.add(id_)
        (answer,) = await self._until_heard(lambda: queue.cancel([id_]))
        host.world.say(host.name, f"cancelled item {item.n}: {answer}")
        if answer in ("cancelled", "requested"):
            host.world.count("cancelled" if answer == "cancelled" else "cancelled while out")
            fences = host.disk.rows("queue", "SELECT fence FROM tasks WHERE id = ?", (int(id_, 16),))
            host.journal.cancelled[id_] = fences[0][0] if fences else 0

    def bring_again(self, since: float) -> None:
        """Submits every item again, under its key, that was accepted after `since`, the time to which the queue was put
        back."""
        self._put_back = here().world.now
        for item in self._plan.items:
            if item.source == QUEUE and item.n in self.accepted and self.times[item.n] >= since:
                del self.accepted[item.n]
                self._again.append(asyncio.ensure_future(self._bring(item, self._queue, self._log)))

    async def _submit(self, item: Item) -> str:
        """Brings an item as users do, half of them with a dedupe key of their own (all, if they may have to do it
        again long after); each call finds any gateway."""
        dedupe_key = f"n{item.n}" if item.n % 2 or self._restores else ""
        async with AsyncClient(GATEWAYS) as client:
            client._talk = Conversation(Found((GATEWAYS,)), PATIENCE, here().clock.monotonic)
            handle = await self._until_heard(
                lambda: client.submit(work, n=item.n, delay=item.delay or None, key=item.key, dedupe_key=dedupe_key)
            )
        return handle.id

    async def _until_heard(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except (Unavailable, Overloaded, UnknownFunction):
                await asyncio.sleep(0.5)
