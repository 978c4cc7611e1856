"""Objects in memory or in a store, and the items that a source reads of them."""

from __future__ import annotations

import asyncio
from typing import Any

import obstore
from obstore.store import MemoryStore

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.sdk.source import StreamBatch
from tailrace.tailers.sources.objects import ObjectsOptions, ObjectsSource

LINES = [b'{"n": %d, "pad": "%s"}' % (n, b"x" * (n % 60)) for n in range(400)]
CONTENT = b"".join(line + b"\n" for line in LINES)


class Place:
    """Objects in memory, and sources over them."""

    def __init__(self, stores: EmbeddedStores, client: Any = None, **keys: Any) -> None:
        self.stores = stores
        self.client = MemoryStore() if client is None else client
        self.keys = {"url": "memory:///", "poll": 0.02, "format": "jsonl", "block": 1024, **keys}

    def put(self, key: str, content: bytes) -> None:
        obstore.put(self.client, key, content)

    def source(self, **more: Any) -> ObjectsSource:
        options = ObjectsOptions.model_validate({**self.keys, **more})
        client = self.client if options.scheme == "memory" else None
        return ObjectsSource(options, self.stores.inventory, self.stores.segments, "o", client)


class Read:
    """The items that were read, by position."""

    def __init__(self) -> None:
        self.items: dict[int, bytes] = {}
        self.refused: dict[int, str] = {}
        self.absent: list[int] = []

    def take(self, batches: list[StreamBatch]) -> None:
        for batch in batches:
            for index, position in enumerate(batch.positions):
                assert position not in self.items and position not in self.refused, "read twice"
                if index in batch.refused:
                    self.refused[position] = batch.refused[index]
                else:
                    self.items[position] = batch.payloads[index]
            self.absent.extend(batch.absent)

    @property
    def end(self) -> int:
        return len(self.items) + len(self.refused) + len(self.absent)

    @property
    def lines(self) -> list[bytes]:
        return [self.items[position] for position in sorted(self.items)]


async def everything(source: ObjectsSource, at: int = 0, limit: int = 100) -> Read:
    """Reads all that is there, from a position on. The source is idle afterwards."""
    read = Read()
    await source.open({source.partition: at})
    async with asyncio.timeout(20):
        while True:
            batches = await source.read(limit, 1 << 20, 0.3)
            read.take(batches)
            if not batches and source.idle:
                break
    every = sorted([*read.items, *read.refused, *read.absent])
    assert every == list(range(at, at + len(every))), "every position once, without a gap"
    return read
