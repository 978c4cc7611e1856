"""The audit book of one partition: how every position ended, kept beside the frontier and never read from it.

The frontier has one bit a position and knows that something is settled; the book has one byte and knows how. Each
settlement is told to both. When the frontier has passed a stretch, the book counts it: a byte that is still 0 is a
position that was passed without having ended (lost), and a byte that was written twice is one that ended twice. So a
healthy stream writes nine numbers with its checkpoint, and nothing per item; positions that did not succeed are kept as
ranges.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Sequence

from ...model.audit import NAMED, Ending, Fate

_FATES = tuple(Fate)
_NONE = 0
#: Up to so many positions are counted one by one: where there are hundreds of partitions, each mostly has a few.
FEW = 64
_OPEN = b"\x00"
#: Stretches that ended in one way other than well.
_RUNS = re.compile(rb"([^\x01])\1*", re.DOTALL)


class Book:
    """The book of one partition: how each of its positions from `start` on ended.

    start     where the book begins
    position  everything below it is counted in `tally`, by fate
    missing   passed without a fate; `doubled`: ended twice. The first NAMED of them, and how many.
    told      from there on, every stretch that did not succeed becomes an ending
    endings   those passed since the last checkpoint that is durable

    Invariant: `sum(tally) + missing_count == position - start`. `_fates` covers [position, position + len), one byte
    each: 0 or a Fate; nothing from `_end` on was read in this life.
    """

    __slots__ = (
        "_end",
        "_fates",
        "doubled",
        "doubled_count",
        "endings",
        "missing",
        "missing_count",
        "position",
        "start",
        "tally",
        "told",
    )

    def __init__(self, position: int, saved: bytes = b"", ahead: bytes = b"") -> None:
        """Loads a book from `saved`, which `encode` returned for the checkpoint at `position`. Without `saved` the book
        begins here: positions above it that the checkpoint says are settled (`ahead`, a byte of 0 or 1 each) then count
        as succeeded."""
        self.start = self.position = self.told = self._end = position
        self.endings: list[Ending] = []
        self.tally = [0] * (max(_FATES) + 1)
        self.missing: list[int] = []
        self.doubled: list[int] = []
        self.missing_count = self.doubled_count = 0
        self._fates = bytearray(ahead.rstrip(_OPEN))
        if saved:
            self.load(saved)

    def read(self, positions: Sequence[int], absent: Sequence[int] = (), gap: Fate = Fate.ABSENT) -> None:
        """Takes note of positions just read, rising. `absent` positions hold nothing, and positions between that did
        not come count as `gap`. A position that was read before, or ended in an earlier life, stays as it is."""
        count = len(positions)
        if not absent and count and positions[0] == self._end == positions[-1] - count + 1:
            self._end += count
            return
        stop = max(positions[-1] if count else -1, max(absent, default=-1)) + 1
        if stop <= self._end:
            return
        first = self._end
        self._cover(stop)
        fates, base = self._fates, self.position
        fresh = bytearray([gap]) * (stop - first)
        for position in positions:
            if position >= first:
                fresh[position - first] = _NONE
        for position in absent:
            if position >= first:
                fresh[position - first] = Fate.ABSENT
        known = fates[first - base : stop - base]
        if known.count(_NONE) != len(known):
            for index, fate in enumerate(known):
                if fate:
                    fresh[index] = fate
        fates[first - base : stop - base] = fresh
        self._end = stop

    def skip(self, last: int, fate: Fate) -> None:
        """Counts everything up to `last` as ended with `fate`, except positions that were read or had ended in an
        earlier life."""
        stop = last + 1
        if stop <= self._end:
            return
        if self._end == self.position and not self._fates:
            self.tally[fate] += stop - self.position  # however many they are, they take no memory
            self._tell(self.position, stop - 1, fate)
            self.position = self._end = stop
            return
        first = self._end - self.position
        self._cover(stop)
        self._fates[first : stop - self.position] = self._fates[first : stop - self.position].replace(
            _OPEN, bytes((fate,))
        )
        self._end = stop

    def settle(self, positions: Sequence[int], fate: Fate) -> None:
        """Counts positions, rising, that ended with `fate`. Long runs of them are better told as ranges."""
        if positions:
            self._cover(positions[-1] + 1)
        fates, base = self._fates, self.position
        for position in positions:
            place = position - base
            if place < 0 or fates[place]:
                self._double(position)
            else:
                fates[place] = fate

    def settle_range(self, first: int, last: int, fate: Fate) -> None:
        """Counts everything from `first` to `last`, both included, as ended with `fate`."""
        base, count = self.position, last - first + 1
        self._cover(last + 1)
        fates = self._fates
        start = first - base
        if start >= 0 and fates.count(_NONE, start, start + count) == count:
            fates[start : start + count] = bytes((fate,)) * count
            return
        self.settle(range(first, last + 1), fate)

    def passed(self, position: int) -> None:
        """Counts everything below `position`, which is settled as the frontier says."""
        count = position - self.position
        if count <= 0:
            return
        self._cover(position)
        gone = self._fates[:count]
        counted = gone.count(Fate.SUCCEEDED)
        self.tally[Fate.SUCCEEDED] += counted
        if counted != count:
            if count <= FEW:
                for fate in gone:
                    self.tally[fate] += fate > Fate.SUCCEEDED
            else:
                for fate in _FATES[1:]:
                    self.tally[fate] += gone.count(fate)
            self._miss(gone)
            for run in _RUNS.finditer(gone):
                self._tell(self.position + run.start(), self.position + run.end() - 1, run[0][0])
        del self._fates[:count]
        self.position = position
        self._end = max(self._end, position)

    def kept(self, position: int) -> None:
        """Forgets the endings below `position`, which are durable now."""
        if self.endings:
            self.endings = [ending for ending in self.endings if ending.last >= position]

    def open(self) -> list[int]:
        """Positions read in this life that have not ended, rising."""
        size = self._end - self.position
        return [self.position + index for index, fate in enumerate(self._fates[:size]) if not fate] + list(
            range(self.position + min(size, len(self._fates)), self._end)
        )

    def ended(self, first: int, end: int) -> dict[Fate, int]:
        """Number of positions that ended in each way, in a range that the frontier has not passed."""
        start, stop = max(0, first - self.position), max(0, end - self.position)
        return {fate: count for fate in _FATES if (count := self._fates.count(fate, start, stop))}

    def ahead(self) -> dict[Fate, int]:
        """Number of positions above `position` that ended in each way."""
        if len(self._fates) <= FEW:
            return {_FATES[fate - 1]: count for fate, count in Counter(self._fates).items() if fate}
        return self.ended(self.position, self.position + len(self._fates))

    @property
    def end(self) -> int:
        """The next position that was never read."""
        return self._end

    def encode(self) -> bytes:
        """The book as bytes, for the checkpoint at `position`."""
        counts = [self.missing_count, self.missing, self.doubled_count, self.doubled]
        head = [self.start, self.tally[1:], *counts, self.told]
        text = json.dumps(head, separators=(",", ":")).encode()
        ahead = bytes(self._fates).rstrip(_OPEN)
        return text + b"\n" + zlib.compress(ahead, 1) if ahead else text

    def load(self, saved: bytes) -> None:
        """Goes on from the bytes that `encode` returned."""
        text, _, ahead = saved.partition(b"\n")
        start, tally, missing_count, missing, doubled_count, doubled, *told = json.loads(text)
        self.start, self.told = start, told[0] if told else self.position  # an older book kept no endings
        self.tally = [0, *tally]
        self.missing_count, self.missing = missing_count, missing
        self.doubled_count, self.doubled = doubled_count, doubled
        self._fates = bytearray(zlib.decompress(ahead)) if ahead else bytearray()

    def _cover(self, end: int) -> None:
        """Makes sure that there is a byte for every position below `end`."""
        short = end - self.position - len(self._fates)
        if short > 0:
            self._fates.extend(bytes(short))

    def _tell(self, first: int, last: int, fate: int) -> None:
        newest = self.endings[-1] if self.endings else None
        if newest is not None and newest.last == first - 1 and newest.counts == {fate: first - newest.first}:
            self.endings[-1] = Ending(newest.first, last, {fate: last - newest.first + 1})
        else:
            self.endings.append(Ending(first, last, {fate: last - first + 1}))

    def _miss(self, gone: bytearray) -> None:
        index = gone.find(_NONE)
        while index >= 0:
            self.missing_count += 1
            if len(self.missing) < NAMED:
                self.missing.append(self.position + index)
            index = gone.find(_NONE, index + 1)

    def _double(self, position: int) -> None:
        self.doubled_count += 1
        if len(self.doubled) < NAMED:
            self.doubled.append(position)
