"""The batches appended last, in memory: a reader that keeps up needs neither a thread nor SQL, and decodes nothing (as
a broker serves its tail from the page cache)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from .batch import Batch

#: Bytes kept, all partitions together: some milliseconds of the fastest appends, next to nothing beside the node's own.
RECENT_BYTES = 4 << 20
#: Bytes that a record takes in memory beside its own, about: the objects around its payload, key and headers.
RECORD_BYTES = 200


class RecentBatches:
    """The batches appended last. Invariant: `_bytes` is about the memory of all in `_batches`, and at most the
    bound."""

    def __init__(self, bound: int = RECENT_BYTES) -> None:
        self._bound = bound
        self._bytes = 0
        self._batches: OrderedDict[tuple[Hashable, int], tuple[Batch, int]] = OrderedDict()

    def add(self, partition: Hashable, batch: Batch, size: int) -> None:
        """Adds a durable batch of `size` bytes; the oldest ones go."""
        size += RECORD_BYTES * len(batch.columns.payloads)
        self._batches[partition, batch.first] = batch, size
        self._bytes += size
        while self._bytes > self._bound:
            _, (_, gone) = self._batches.popitem(last=False)
            self._bytes -= gone

    def find(self, partition: Hashable, position: int) -> Batch | None:
        """The batch that begins at the position, if it is one of the last."""
        found = self._batches.get((partition, position))
        return None if found is None else found[0]
