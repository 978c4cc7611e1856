"""`order: key | partition`: at most one item of a key is handed out at a time, in the order of the source (the per-key
queues of Confluent's parallel consumer, without its lanes).

The first unsettled item of a key is its head: it alone may be anywhere (in flight, held, being read again, on its way
into a store). The others wait in the key's line, whatever becomes of the head: one that failed stays the head until it
is done or dead. Other keys pass. With `order: partition` a partition has one key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...sdk.model.workload import Kind

#: A head that is out for so many seconds is slow: what waits behind it no longer keeps the tailer from reading on.
PATIENCE = 1.0


class Waiting(NamedTuple):
    """An item that waits for the items of its key before it."""

    position: int
    kind: Kind


class Order:
    """The lines of one partition.

    waiting  how many items wait in lines
    moving   those of them whose head is not stuck: they may be wanted any moment

    Invariants: a key has a line exactly while it has a head; positions in a line rise, the head's first; `_stuck` names
    keys with a line, `_stuck_waiting` counts what waits in those.
    """

    __slots__ = ("_heads", "_lines", "_out", "_stuck", "_stuck_waiting", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self._heads: dict[int, str] = {}
        self._lines: dict[str, deque[Waiting] | None] = {}  # None: nobody waits, which is the rule
        self._stuck: set[str] = set()
        self._stuck_waiting = 0
        self._out: deque[tuple[float, list[int]]] = deque()

    @property
    def moving(self) -> int:
        """How many wait behind heads that are not stuck."""
        return self.waiting - self._stuck_waiting

    def enter(self, key: str, position: int, kind: Kind) -> bool:
        """An item in memory, of a rising position when it comes for the first time. True: it is its key's head and may
        be handed out. False: it waits in its line."""
        if position in self._heads:
            return True
        if key not in self._lines:
            self._lines[key] = None
            self._heads[position] = key
            return True
        line = self._lines[key]
        if line is None:
            line = self._lines[key] = deque()
        assert not line or line[-1].position < position, "items of a key come in the order of the source"
        line.append(Waiting(position, kind))
        self.waiting += 1
        self._stuck_waiting += key in self._stuck
        return False

    def is_head(self, position: int) -> bool:
        """Whether it is a key's head: an item whose order counts."""
        return position in self._heads

    def over(self, positions: Iterable[int]) -> list[Waiting]:
        """Items are settled: those that follow them in their lines are the new heads, and may be handed out."""
        free = []
        for position in positions:
            key = self._heads.pop(position, None)
            if key is None:
                continue
            line = self._lines[key]
            if key in self._stuck:
                self._stuck.discard(key)
                self._stuck_waiting -= len(line or ())
            if not line:
                del self._lines[key]
                continue
            following = line.popleft()
            self.waiting -= 1
            self._heads[following.position] = key
            free.append(following)
        return free

    def stuck(self, positions: Iterable[int]) -> None:
        """These may not run for a while: they failed, or their cell is closed."""
        for position in positions:
            key = self._heads.get(position)
            if key is not None and key not in self._stuck:
                self._stuck.add(key)
                self._stuck_waiting += len(self._lines[key] or ())

    def handed_out(self, positions: list[int], now: float) -> None:
        """These are in flight from `now` on, a time that never goes back."""
        self._out.append((now, positions))

    def grow_patient(self, now: float) -> None:
        """Whatever has been out for `PATIENCE` counts as stuck."""
        while self._out and self._out[0][0] <= now - PATIENCE:
            self.stuck(self._out.popleft()[1])

    def rename(self, new_kind: Callable[[Kind], Kind]) -> None:
        """Files everything under what `new_kind` makes of its kind: a function's own priority became known."""
        for line in self._lines.values():
            for index in range(len(line or ())):
                assert line is not None
                position, kind = line[index]
                line[index] = Waiting(position, new_kind(kind))

    def positions(self) -> Iterator[int]:
        """Those of all that wait."""
        for line in self._lines.values():
            for each in line or ():
                yield each.position

    def longest(self) -> tuple[str, int, int] | None:
        """The key behind whose head most items wait, that head's position, and their number; None when none wait."""
        key, line = max(self._lines.items(), key=lambda one: len(one[1] or ()), default=("", None))
        if not line:
            return None
        return key, next(position for position, each in self._heads.items() if each == key), len(line)
