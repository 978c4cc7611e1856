"""The frontier of a source whose positions are far apart (ids that hold a time, say): like `frontier.py`, with an entry
for each item read instead of a byte for each position.

There never was anything between two of them, so that takes no memory. A checkpoint carries, beside the settled
positions above it, the first unsettled ones: elsewhere these follow from the numbers, here nobody else knows which
there were.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, compress, pairwise
from operator import sub

from ...model.errors import InvalidRequest
from .frontier import Frontier

#: The first byte of an encoding; `frontier.py` has another.
_FORMAT = b"\x02"
#: Unsettled positions that a checkpoint names: no more are marked as suspects at a takeover.
MOST_OPEN = 4096


class SparseFrontier(Frontier):
    """A Frontier, by its words.

    Invariants: `_order` has, rising, every position in [position, end) that was read here and not passed, and begins
    with one of `_open` (after `advance`); `_open` has the unsettled ones. `_before` has the positions from
    `end` on that an earlier run knew, and whether they were settled.
    """

    __slots__ = ("_before", "_open", "_order")

    def __init__(self, position: int, ahead: bytes = b"") -> None:
        super().__init__(position)
        self._order: deque[int] = deque()
        self._open: set[int] = set()
        self._before = _decode(position, ahead)

    @property
    def span(self) -> int:
        return len(self._order)

    @property
    def unsettled(self) -> int:
        return len(self._open)

    def read(self, positions: Sequence[int], absent: Sequence[int] = ()) -> list[int] | None:
        before = self._before
        stop = max(positions[-1] if positions else -1, max(absent, default=-1)) + 1
        if positions and not before and positions[0] >= self.end:
            self._order.extend(positions)
            self._open.update(positions)
            self.end = max(self.end, stop)
            return None
        run = []
        for index, position in enumerate(positions):
            if position < self.end:
                continue
            self._order.append(position)
            if not before.pop(position, False):
                self._open.add(position)
                run.append(index)
        self._forget(stop)
        return None if len(run) == len(positions) else run

    def is_settled(self, position: int) -> bool:
        return position not in self._open and (position < self.end or self._before.get(position, False))

    def unread(self, first: int, last: int) -> list[tuple[int, int]]:
        first = max(first, self.end)
        done = [position for position, settled in sorted(self._before.items()) if settled and first <= position <= last]
        edges = [first - 1, *done, last + 1]
        return [(after + 1, before - 1) for after, before in pairwise(edges) if after + 1 < before]

    def skip(self, last: int) -> None:
        self._forget(last + 1)
        self.advance()

    def _forget(self, stop: int) -> None:
        """Forgets the positions of an earlier run below `stop`: everything there was read or never will be."""
        if stop > self.end:
            self.end = stop
            if self._before:
                self._before = {position: settled for position, settled in self._before.items() if position >= stop}

    def settle(self, positions: Iterable[int]) -> None:
        self._open.difference_update(positions)

    def settle_range(self, first: int, last: int) -> None:
        self._open.difference_update(range(first, last + 1))

    def advance(self) -> bool:
        order, unsettled, position = self._order, self._open, self.position
        while order and order[0] not in unsettled:
            order.popleft()
        self.position = order[0] if order else self.end
        return self.position > position

    @property
    def newest_settled(self) -> int:
        return next((position for position in reversed(self._order) if position not in self._open), self.position - 1)

    def unsettled_below(self, end: int, most: int) -> list[int]:
        known = sorted(self._before)
        return [position for position in known[: bisect_left(known, end)] if not self._before[position]][:most]

    def encode(self) -> bytes:
        unsettled = self._open
        positions = list(self._order)
        settled = [position not in unsettled for position in positions]
        if self._before:
            positions += sorted(self._before)
            settled += [self._before[position] for position in positions[len(settled) :]]
        if len(settled) - sum(settled) > MOST_OPEN:
            ranks = accumulate(not done for done in settled)
            kept = [done or rank <= MOST_OPEN for done, rank in zip(settled, ranks, strict=True)]
            positions, settled = list(compress(positions, kept)), list(compress(settled, kept))
        if not positions:
            return b""
        steps = array("Q", map(sub, positions, [self.position, *positions[:-1]]))
        return _FORMAT + zlib.compress(steps.tobytes() + bytes(settled), 1)


def settled_ahead(position: int, ahead: bytes) -> frozenset[int]:
    """The positions above `position` that a checkpoint says are settled."""
    return frozenset(each for each, settled in _decode(position, ahead).items() if settled)


def _decode(position: int, ahead: bytes) -> dict[int, bool]:
    """The positions above `position` that a checkpoint names, and whether they were settled; rising."""
    if not ahead:
        return {}
    if ahead[:1] != _FORMAT:
        raise InvalidRequest(
            f"a checkpoint's settled positions are in format {ahead[0]}, but this sparse source (its positions "
            f"are far apart) has format {_FORMAT[0]}: run the version that wrote the checkpoint"
        )
    try:
        data = zlib.decompress(ahead[1:])
    except zlib.error as error:
        raise InvalidRequest(
            f"a checkpoint's settled positions cannot be read ({error}): put the state back from a backup"
        ) from error
    count = len(data) // 9
    steps = array("Q", data[: 8 * count])
    positions = list(accumulate(steps, initial=position))[1:]
    return dict(zip(positions, map(bool, data[8 * count :]), strict=True))
