"""Puts the planned items in, however broken the way is, and remembers the promise for each."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from ...model.errors import StoreFull, Unavailable
from ...sdk.async_client import AsyncClient
from ...sdk.call import Call
from ...stores.log.log import Record
from .fed_streams import Fed
from .path import QUEUE, STREAM
from .plan import FedItem
from .verdict import Expected

#: Items of one submission, so that several are under way when something breaks.
CHUNK = 25
#: Seconds that a submission is tried; longer than any fault.
PATIENCE = 180.0

#: Seconds for which a stream may end below its acknowledged records.
GONE_AFTER = 20.0

T = TypeVar("T")


class RecordsGone(Exception):
    """A stream lost records that it had acknowledged."""


class FaultFeed:
    """The feed of one run. `expected` grows with each accepted item, `sent` has the time when each was first on its way
    (CLOCK_MONOTONIC); `failed` has the reasons why some were not accepted.

    Submissions go through the gateway's wire as a user's would, with the tokens by which a repeated one is known.
    Records are put into the streams directly, by their only writer: if no answer comes, the end of the stream tells
    whether they are in. That may be too soon to tell, so `complete` looks again.
    """

    def __init__(self, client: AsyncClient, streams: Fed) -> None:
        self.expected: dict[str, Expected] = {}
        self.sent: dict[str, float] = {}
        self.failed: list[str] = []
        self._client = client
        self._streams = streams
        self._ends = [0] * len(streams.places)
        self._locks = [asyncio.Lock() for _ in streams.places]
        self._tasks: set[asyncio.Task[object]] = set()
        self._turn = 0

    def put(self, items: Sequence[FedItem]) -> list[asyncio.Task[list[str]]]:
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
        """Number of chunks on their way in."""
        return len(self._tasks)

    async def _submit(self, items: Sequence[FedItem]) -> list[str]:
        now = time.monotonic()
        calls = [
            Call(item.function, arguments=item.arguments, delay=item.delay or None, tenant=item.tenant)
            for item in items
        ]
        while True:
            try:
                handles = await self._client.submit_many(calls)
                break
            except StoreFull:  # refused: nothing was kept, so it may be sent as if for the first time
                await asyncio.sleep(0.2)
        for item, handle in zip(items, handles, strict=True):
            due = now + item.delay if item.delay else 0.0
            self.expected[handle.id] = Expected(QUEUE, item.dies, due, now, item.function, item.tenant)
        return [handle.id for handle in handles]

    async def _append(self, items: Sequence[FedItem]) -> list[str]:
        self._turn = (self._turn + 1) % len(self._ends)
        stream, now = self._turn, time.monotonic()
        records = [Record(json.dumps(item.arguments).encode(), "", (("function", item.function),)) for item in items]
        async with self._locks[stream]:
            positions = await self._put_in(stream, records)
            self._ends[stream] = positions[-1] + 1
        ids = [self._id(stream, position) for position in positions]
        for id, item in zip(ids, items, strict=True):
            self.expected[id] = Expected(STREAM, item.dies, put=now)
            self.sent[id] = now
        return ids

    def _id(self, stream: int, position: int) -> str:
        return f"{self._streams.places[stream]}/{position}"

    async def _put_in(self, stream: int, records: Sequence[Record]) -> list[int]:
        """Puts records into a stream and returns their positions. If an answer does not come, the end tells: above the
        former end, the records found there are in; below, a new leader does not know all acknowledged records yet, or
        they are gone."""
        found: list[int] = []
        unknown, short = False, 0.0
        while True:
            known = found[-1] + 1 if found else self._ends[stream]
            try:
                end = (await self._streams.ends()).get(stream, 0) if unknown else known
                short = 0.0 if end >= known else short or time.monotonic()
                if short and time.monotonic() - short > GONE_AFTER:
                    self._ends[stream] = end
                    raise RecordsGone(f"{self._streams.places[stream]} ends at {end}, and {known} were acknowledged")
                if end > known:
                    found += (await self._streams.page(stream, known)).positions[: len(records) - len(found)]
                elif end == known:
                    found += await self._streams.append(stream, records[len(found) :])
                if len(found) == len(records):
                    return found
            except Unavailable:
                unknown = True
            await asyncio.sleep(0.2)

    async def complete(self) -> None:
        """Looks at all records in the streams: each is expected, also the second copy of one that was put in again; an
        acknowledged record that is not there is the server's loss, and told as such."""
        there: set[str] = set()
        for stream, end in (await self._eventually(self._streams.ends)).items():
            position = 0
            while position < end:
                page = await self._eventually(partial(self._streams.page, stream, position))
                for at, payload in zip(page.positions, page.payloads, strict=True):
                    id = self._id(stream, at)
                    there.add(id)
                    self.expected.setdefault(id, Expected(STREAM, bool(json.loads(payload).get("dies"))))
                if not page.positions:
                    break
                position = page.positions[-1] + 1
        if gone := [id for id, item in self.expected.items() if item.source == STREAM and id not in there]:
            self.failed.append(f"{len(gone)} records are gone that were acknowledged, such as {gone[0]}")

    async def ends(self) -> dict[str, int]:
        """The end of each stream, by its place."""
        ends = await self._eventually(self._streams.ends)
        return {self._streams.places[stream]: end for stream, end in ends.items()}

    async def _eventually(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except Unavailable:
                await asyncio.sleep(0.2)

    async def start(self) -> None:
        """Makes the streams."""
        await self._eventually(self._streams.create)

    async def close(self) -> None:
        """Gives up chunks that are still on their way, and the connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()
        await self._streams.close()
