"""Puts the planned items in, however broken the way is, and remembers what was promised for each."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from ...sdk.async_client import AsyncClient
from ...sdk.call import Call
from ...sdk.model.errors import StoreFull, Unavailable
from ...stores.log.log import Log, Record
from .plan import Item
from .verdict import QUEUE, STREAM, Expected

#: Items of one submission, so that several are under way when something breaks.
CHUNK = 25
#: Seconds that a submission is tried; longer than any fault.
PATIENCE = 180.0

T = TypeVar("T")


class FedLog(Log, Protocol):
    """A log with a connection of its own."""

    async def close(self) -> None: ...


class Feed:
    """`expected` grows with what was accepted, `sent` has when each was on its way first (CLOCK_MONOTONIC); `failed`
    says why something was not. `ids` makes an item's id of its `{partition}` and `{position}` in the stream.

    Submissions go through the gateway's wire as a user's would, with the tokens by which a repeated one is known.
    Records are appended at the log itself, by their only writer: after an answer that did not come, the end of the
    partition tells whether they are in. That may be too soon to tell, so `complete` looks again.
    """

    def __init__(self, client: AsyncClient, log: FedLog, stream: str, partitions: int, ids: str) -> None:
        self.expected: dict[str, Expected] = {}
        self.sent: dict[str, float] = {}
        self.failed: list[str] = []
        self._client = client
        self._log = log
        self._stream = stream
        self._ids = ids
        self._ends = [0] * partitions
        self._locks = [asyncio.Lock() for _ in range(partitions)]
        self._tasks: set[asyncio.Task[object]] = set()
        self._turn = 0

    def put(self, items: Sequence[Item]) -> list[asyncio.Task[list[str]]]:
        """Puts items in, in the background; each task returns the ids of its chunk."""
        tasks: list[asyncio.Task[list[str]]] = []
        for source, send in ((QUEUE, self._submit), (STREAM, self._append)):
            mine = [item for item in items if item.source == source]
            for start in range(0, len(mine), CHUNK):
                task = asyncio.create_task(send(mine[start : start + CHUNK]), name=f"feed-{source}")
                self._tasks.add(task)
                task.add_done_callback(self._done)
                tasks.append(task)
        return tasks

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed.append(f"{type(error).__name__}: {error}")

    @property
    def pending(self) -> int:
        """Chunks on their way in."""
        return len(self._tasks)

    async def _submit(self, items: Sequence[Item]) -> list[str]:
        now = time.monotonic()
        calls = [Call(item.function, arguments=item.arguments, delay=item.delay or None) for item in items]
        while True:
            try:
                handles = await self._client.submit_many(calls)
                break
            except StoreFull:  # refused: nothing of it was kept, so that it may be sent as if for the first time
                await asyncio.sleep(0.2)
        for item, handle in zip(items, handles, strict=True):
            self.expected[handle.id] = Expected(QUEUE, item.dies, now + item.delay if item.delay else 0.0)
        return [handle.id for handle in handles]

    async def _append(self, items: Sequence[Item]) -> list[str]:
        self._turn = (self._turn + 1) % len(self._ends)
        partition, now = self._turn, time.monotonic()
        records = [Record(json.dumps(item.arguments).encode(), "", (("function", item.function),)) for item in items]
        async with self._locks[partition]:
            first = await self._append_once(partition, records)
            self._ends[partition] = first + len(records)
        ids = [self._ids.format(partition=partition, position=first + index) for index in range(len(items))]
        for id, item in zip(ids, items, strict=True):
            self.expected[id] = Expected(STREAM, item.dies)
            self.sent[id] = now
        return ids

    async def _append_once(self, partition: int, records: Sequence[Record]) -> int:
        """Where they are. After an answer that did not come, the end tells: above where it was, they are in; below, a
        new leader does not know yet what was acknowledged."""
        unknown = False
        while True:
            try:
                end = await self._end(partition) if unknown else self._ends[partition]
                if end > self._ends[partition]:
                    return self._ends[partition]
                if end == self._ends[partition]:
                    return await self._log.append(self._stream, partition, records)
            except Unavailable:
                unknown = True
            await asyncio.sleep(0.2)

    async def complete(self) -> None:
        """Looks at the whole stream: what is there is expected, also the second copy of a record whose append was
        tried again; what was acknowledged and is not there is the log's loss, and told as such."""
        there: set[str] = set()
        for partition, end in (await self.ends()).items():
            position = 0
            while position < end:
                read = partial(self._log.read, self._stream, partition, position, 1000, 1 << 20)
                page = await self._eventually(read)
                for at, payload in zip(page.positions, page.payloads, strict=True):
                    id = self._ids.format(partition=partition, position=at)
                    there.add(id)
                    self.expected.setdefault(id, Expected(STREAM, bool(json.loads(payload).get("dies"))))
                if not page.positions:
                    break
                position = page.positions[-1] + 1
        if gone := [id for id, item in self.expected.items() if item.source == STREAM and id not in there]:
            self.failed.append(f"the log lost {len(gone)} records that it had acknowledged, such as {gone[0]}")

    async def ends(self) -> dict[int, int]:
        """The end of each partition."""
        bounds = await self._eventually(partial(self._log.bounds, self._stream))
        return {partition: each.end for partition, each in bounds.items()}

    async def _eventually(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except Unavailable:
                await asyncio.sleep(0.2)

    async def _end(self, partition: int) -> int:
        bounds = (await self._log.bounds(self._stream)).get(partition)
        return 0 if bounds is None else bounds.end

    async def start(self) -> None:
        """Makes the stream."""
        await self._eventually(lambda: self._log.create(self._stream, len(self._ends)))

    async def close(self) -> None:
        """Gives up what is still on its way, and the connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()
        await self._log.close()
