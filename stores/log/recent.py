"""The batches appended last, so that a reader who keeps up needs neither a thread nor SQL (as a broker serves its tail
from the page cache)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from .batch import Batch, decode

#: Bytes kept, all partitions together: some milliseconds of the fastest appends, next to nothing beside the node's own.
RECENT_BYTES = 2 << 20


class Recent:
    """Invariant: `_bytes` is the size of everything in `_batches`, and at most the bound."""

    def __init__(self, bound: int = RECENT_BYTES) -> None:
        self._bound = bound
        self._bytes = 0
        self._batches: OrderedDict[tuple[Hashable, int], tuple[float, bytes]] = OrderedDict()

    def add(self, partition: Hashable, first: int, time: float, columns: bytes) -> None:
        """A batch that is durable; the oldest ones go."""
        self._batches[partition, first] = (time, columns)
        self._bytes += len(columns)
        while self._bytes > self._bound:
            _, (_, gone) = self._batches.popitem(last=False)
            self._bytes -= len(gone)

    def find(self, partition: Hashable, position: int) -> Batch | None:
        """The batch that begins at the position, if it is one of the last."""
        found = self._batches.get((partition, position))
        return None if found is None else Batch(position, found[0], decode(found[1]))
