"""Whoever brings work: submits to the queue and appends to the stream over the network, again until it was heard."""

from __future__ import annotations

import asyncio
import json

from ...sdk.model.errors import Overloaded, Unavailable
from ...sdk.model.workload import Kind
from ...stores.log.log import Record
from ...stores.queue.queue import NewItem
from ...stores.remote import RemoteLog, RemoteQueue
from .host import here
from .parts import FUNCTION, QUEUE
from .plan import Item, Plan


class Client:
    """`accepted`: the items that the platform said it has, by number."""

    def __init__(self, plan: Plan, store: str) -> None:
        self._plan = plan
        self._store = store
        self.accepted: set[int] = set()

    async def main(self) -> None:
        """The client's process."""
        queue, log = RemoteQueue(self._store), RemoteLog(self._store)
        streams = {item.source for item in self._plan.items} - {QUEUE}
        for stream in sorted(streams):
            await self._until_heard(lambda stream=stream: log.create(stream, 1))
        async with asyncio.TaskGroup() as group:
            for item in self._plan.items:
                group.create_task(self._bring(item, queue, log))

    async def _bring(self, item: Item, queue: RemoteQueue, log: RemoteLog) -> None:
        host = here()
        await asyncio.sleep(max(0.0, item.at - host.world.now))
        payload = json.dumps({"n": item.n}).encode()
        if item.source == QUEUE:
            due = host.clock.wall() + item.delay if item.delay else 0.0
            new = NewItem(Kind(FUNCTION), payload, due=due, key=item.key, dedupe_key=f"n{item.n}")
            await self._until_heard(lambda: queue.submit([new]))
        else:
            headers = [("priority", item.priority)] if item.priority else []
            headers += [("expires", f"{item.expires}s")] if item.expires else []
            record = Record(payload, item.key, tuple(headers))
            await self._until_heard(lambda: log.append(item.source, 0, [record]))
            if item.expires:
                host.journal.deadlines[item.n] = host.world.now + item.expires
        self.accepted.add(item.n)
        host.world.say(host.name, f"brought item {item.n} to {item.source}")

    async def _until_heard(self, call: object) -> None:
        while True:
            try:
                await call()  # type: ignore[operator]
                return
            except (Unavailable, Overloaded):
                await asyncio.sleep(0.5)
