"""Puts the planned items in, however broken the way is, and remembers what was promised for each."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence

from ...sdk.async_client import AsyncClient
from ...sdk.call import Call
from ...sdk.model.errors import StoreFull, Unavailable
from ...stores.log.log import Record
from ...stores.remote import RemoteLog
from .plan import Item
from .verdict import QUEUE, STREAM, Expected
from .world import PARTITIONS
from .world import STREAM as STREAM_NAME

#: Items of one submission, so that several are under way when something breaks.
CHUNK = 25
#: Seconds that a submission is tried; longer than any fault.
PATIENCE = 180.0


class Feed:
    """`expected` grows with what was accepted; `failed` says why something was not.

    Submissions go through the gateway's wire as a user's would, with the tokens by which a repeated one is known.
    Records are appended at the store itself, by their only writer: after an answer that did not come, the end of the
    partition tells whether they are in.
    """

    def __init__(self, gateway: str, store: str) -> None:
        self.expected: dict[str, Expected] = {}
        self.failed: list[str] = []
        self._client = AsyncClient(gateway, timeout=PATIENCE)
        self._log = RemoteLog(store)
        self._ends = [0] * PARTITIONS
        self._locks = [asyncio.Lock() for _ in range(PARTITIONS)]
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
        self._turn = (self._turn + 1) % PARTITIONS
        partition = self._turn
        records = [Record(json.dumps(item.arguments).encode(), "", (("function", item.function),)) for item in items]
        async with self._locks[partition]:
            first = self._ends[partition]
            while True:
                try:
                    if await self._end(partition) == first:
                        await self._log.append(STREAM_NAME, partition, records)
                    break
                except Unavailable:
                    await asyncio.sleep(0.2)
            self._ends[partition] = first + len(records)
        ids = [f"{STREAM_NAME}/{partition}/{first + index}" for index in range(len(items))]
        for id, item in zip(ids, items, strict=True):
            self.expected[id] = Expected(STREAM, item.dies)
        return ids

    async def _end(self, partition: int) -> int:
        bounds = (await self._log.bounds(STREAM_NAME)).get(partition)
        return 0 if bounds is None else bounds.end

    async def start(self) -> None:
        """Makes the stream."""
        await self._log.create(STREAM_NAME, PARTITIONS)

    async def close(self) -> None:
        """Gives up what is still on its way, and the connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()
        await self._log.close()
