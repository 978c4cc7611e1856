"""The audit book of a source whose positions are far apart: like `audit_book.py`, with an entry for each item read
instead of a byte for each position. It counts items, not positions: there never was anything between two of them.

A part of such a stream cannot be summed up below the frontier, since nobody knows how many items it had; the whole can.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Sequence

from ...model.audit import NAMED, Fate
from .audit_book import Book

_NONE = 0


class SparseBook(Book):
    """A Book, by its words, with items for positions.

    items     how many were read or lost since `start`
    Invariant: `sum(tally) + missing_count`, the items in `_order` and those in `_lost` add up to `items`. `_fates_of`
    has those in `_order` (known and not passed, rising): 0 or a Fate. `_before` has the items from `end` on that ended
    in an earlier life. `_lost` has skipped stretches that were not passed: the position after, the items, their fate.
    """

    __slots__ = ("_before", "_fates_of", "_lost", "_order", "items")

    def __init__(self, position: int, saved: bytes = b"") -> None:
        self.items = 0
        self._fates_of: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._order: deque[int] = deque()
        self._lost: deque[tuple[int, int, Fate]] = deque()
        super().__init__(position, saved)

    def read(self, positions: Sequence[int], absent: Sequence[int] = (), gap: Fate = Fate.ABSENT) -> None:
        fresh = {position: _NONE for position in positions if position >= self._end}
        fresh.update({position: int(Fate.ABSENT) for position in absent if position >= self._end})
        if fresh:
            self._know(fresh, max(fresh) + 1)

    def _know(self, fresh: dict[int, int], stop: int) -> None:
        """Files everything below `stop`: it is in `fresh`, ended in an earlier life, or never was."""
        before = self._before
        rising = sorted(fresh)
        if before:
            fresh.update({position: fate for position, fate in before.items() if position < stop})
            self._before = {position: fate for position, fate in before.items() if position >= stop}
            rising = sorted(fresh)
        self._fates_of.update(fresh)
        self._order.extend(rising)
        self.items += len(rising)
        self._end = stop

    def skip(self, last: int, fate: Fate, items: int = 1) -> None:
        """Counts everything up to `last` that was never read, and had not ended in an earlier life, as ended with
        `fate`: `items` of them, as far as anybody knows."""
        stop = last + 1
        if stop > self._end:
            self._know({}, stop)
            self._lost.append((stop, items, fate))
            self.items += items

    def settle(self, positions: Sequence[int], fate: Fate) -> None:
        fates, before, end = self._fates_of, self._before, self._end
        for position in positions:
            if position >= end and position not in before:
                before[position] = fate
            elif fates.get(position, fate):
                self._double(position)
            else:
                fates[position] = fate

    def passed(self, position: int) -> None:
        if position <= self.position:
            return
        order, fates, tally = self._order, self._fates_of, self.tally
        while order and order[0] < position:
            passed = order.popleft()
            fate = fates.pop(passed)
            if fate:
                tally[fate] += 1
            else:
                self.missing_count += 1
                if len(self.missing) < NAMED:
                    self.missing.append(passed)
        while self._lost and self._lost[0][0] <= position:
            _, items, lost = self._lost.popleft()
            tally[lost] += items
        self.position = self.told = position
        self._end = max(self._end, position)

    def open(self) -> list[int]:
        return [position for position in self._order if not self._fates_of[position]]

    def ended(self, first: int, end: int) -> dict[Fate, int]:
        found = dict.fromkeys(Fate, 0)
        for position in self._order:
            if first <= position < end and (fate := self._fates_of[position]):
                found[Fate(fate)] += 1
        for stop, items, lost in self._lost:
            if first < stop <= end:
                found[lost] += items
        return {fate: count for fate, count in found.items() if count}

    def ahead(self) -> dict[Fate, int]:
        return self.ended(self.position, self._end)

    def encode(self) -> bytes:
        counts = [self.missing_count, self.missing, self.doubled_count, self.doubled]
        head = json.dumps([self.start, self.tally[1:], *counts], separators=(",", ":")).encode()
        ended = [pair for pair in (*self._fates_of.items(), *self._before.items()) if pair[1]]
        return head + b"\n" + zlib.compress(json.dumps(ended).encode(), 1) if ended else head

    def load(self, saved: bytes) -> None:
        head, _, ended = saved.partition(b"\n")
        self.start, tally, *counts = json.loads(head)
        self.missing_count, self.missing, self.doubled_count, self.doubled = counts
        self.tally = [0, *tally]
        self.items = sum(tally) + self.missing_count
        self._before = dict(json.loads(zlib.decompress(ended))) if ended else {}
