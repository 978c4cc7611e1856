"""A flight that was pushed, until each of its items has an outcome."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.demand import Cell, Closed
from ..model.trace_context import TraceContext
from ..model.workload import Flight

_OPEN = re.compile(b"\x01")


@dataclass(slots=True)
class HandOut:
    """A flight that was pushed. Invariants: `open[i]` is 1 while item i has no outcome, and `left` is the number of
    such items; `counts` is the credit, by cell, that was taken for the push and that `give_back` has not returned
    yet."""

    flight: Flight
    cells: list[Cell]
    counts: Counter[Cell]
    pushed_at: float  # wall clock
    place: Any  # where the items are in their source; the family knows
    clogs: Mapping[str, Closed] = field(default_factory=dict)  # the functions that were clogged then
    traced: dict[int, TraceContext] = field(default_factory=dict)  # sampled items that are open
    open: bytearray = field(default_factory=bytearray)
    left: int = 0

    def __post_init__(self) -> None:
        self.left = len(self.flight)
        self.open = bytearray(b"\x01") * self.left

    def close(self, indexes: list[int]) -> list[int]:
        """Notes that items ended, by rising indexes; returns the indexes of this flight that had not ended before."""
        if indexes[-1] >= len(self.open):
            indexes = [index for index in indexes if index < len(self.open)]
        fresh = indexes if self.left == len(self.open) else [index for index in indexes if self.open[index]]
        for index in fresh:
            self.open[index] = 0
        self.left -= len(fresh)
        return fresh

    def give_back(self, fresh: Sequence[int]) -> Mapping[Cell, int]:
        """Number of items, by cell, that ended with `fresh`, as `close` returned it. Mostly a flight ends at once, or
        all of it but a few: then only those few are counted."""
        counts = self.counts
        if not self.left:
            self.counts = Counter()
        elif len(fresh) > self.left:
            self.counts = Counter([self.cells[index] for index in self.still_open()])
            counts.subtract(self.counts)
        else:
            ended = Counter([self.cells[index] for index in fresh])
            counts.subtract(ended)
            return ended
        return counts

    def still_open(self) -> list[int]:
        """The indexes of items without an outcome."""
        return [found.start() for found in _OPEN.finditer(self.open)]

    def newly_clogged(self, clogs: Mapping[str, Closed], counts: Mapping[Cell, int]) -> dict[Cell, int]:
        """The counts of cells whose function is clogged now, but was not (or not by the same clog) at the push."""
        then = self.clogs.get
        return {
            cell: count
            for cell, count in counts.items()
            if cell.function in clogs and then(cell.function) != clogs[cell.function]
        }

    def release(self, indexes: Sequence[int]) -> int:
        """Releases payloads; returns their size."""
        payloads = self.flight.payloads
        if len(indexes) == len(payloads):
            return sum(map(len, payloads))  # the flight goes as a whole
        size = sum([len(payloads[index]) for index in indexes])
        for index in indexes:
            payloads[index] = b""
        return size
