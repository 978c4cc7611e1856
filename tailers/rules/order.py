"""`order: key | partition`: at most one item of a key is handed out at a time, in the order of the source (the per-key
queues of Confluent's parallel consumer, without its lanes).

The first unsettled item of a key is its head: it alone may be anywhere (in flight, held, being read again, on its way
into a store). The others wait in the key's line, whatever becomes of the head: one that failed stays the head until it
is done or dead. Other keys pass. With `order: partition` a partition has one key.

Items that a former owner handed out may still run (adopted, or being waited for). Until all of them have been read
nobody knows of which keys it is, so the lines are shut: heads wait too. Then such an item is its key's head and goes
on, or it stands behind one that is not known to be done and has to run again after it: a stray. The heads of keys with
strays wait until these have stopped.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...model.workload import Kind
from .priority_inheritance import KeyRanks

#: A head that is out for so many seconds is slow: items behind it no longer keep the tailer from reading on.
PATIENCE = 1.0


class WaitingForKey(NamedTuple):
    """An item that waits for the items of its key before it."""

    position: int
    kind: Kind
    expires_at: float = 0.0  # wall clock seconds; 0: never


class Order:
    """The lines (queues of keys) of one partition.

    shut     no head may be handed out yet
    waiting  how many items wait in lines, or as heads that are barred
    moving   how many of these have a head that is not stuck: they may be wanted any moment
    ranks    how urgent each key is; None: all are alike

    Invariants: a key has a line exactly while it has a head; positions in a line rise, and are above the head's unless
    they are redriven; `_stuck` names
    keys with a line, `_stuck_waiting` counts what waits in those; a barred head is handed out by nobody, and its key
    has strays or the lines are shut.
    """

    __slots__ = (
        "_barred",
        "_heads",
        "_lines",
        "_out",
        "_stray_keys",
        "_strays",
        "_stuck",
        "_stuck_waiting",
        "ranks",
        "shut",
        "waiting",
    )

    def __init__(self, *, ranked: bool = False) -> None:
        self.shut = False
        self.ranks = KeyRanks() if ranked else None
        self.waiting = 0
        self._barred: dict[str, WaitingForKey] = {}  # heads, by key
        self._strays: dict[str, set[int]] = {}
        self._stray_keys: dict[int, str] = {}
        self._heads: dict[int, str] = {}
        self._lines: dict[str, deque[WaitingForKey] | None] = {}  # None: nobody waits, which is the rule
        self._stuck: set[str] = set()
        self._stuck_waiting = 0
        self._out: deque[tuple[float, list[int]]] = deque()

    @property
    def moving(self) -> int:
        """Number of items that wait behind heads that are not stuck; 0 before the lines are open."""
        return 0 if self.shut else self.waiting - self._stuck_waiting - len(self._barred)

    def enter(self, key: str, position: int, kind: Kind, expires_at: float = 0.0) -> bool:
        """Lets an item in memory stand in the line of its key; its position rises when it comes for the first time.
        True: it is its key's head and may be handed out. False: it waits in its line, or for its key's strays."""
        if not self._stand(key, position, kind, expires_at):
            return False
        if not self.shut and key not in self._strays:
            return True
        self._barred[key] = WaitingForKey(position, kind, expires_at)
        self.waiting += 1
        if key in self._strays:
            self._stick(key)
        return False

    def adopt(self, key: str, position: int, kind: Kind) -> bool:
        """Lets an item that runs already stand in the line of its key. True: it is its key's head. False: it is a
        stray."""
        if self._stand(key, position, kind):
            return True
        self._strays.setdefault(key, set()).add(position)
        self._stray_keys[position] = key
        return False

    def stopped(self, position: int) -> WaitingForKey | None:
        """Notes that a stray does not run any more; returns the head that waited for the last one of its key."""
        key = self._stray_keys.pop(position)
        strays = self._strays[key]
        strays.discard(position)
        if strays:
            return None
        del self._strays[key]
        return self._release(key)

    def open(self) -> list[WaitingForKey]:
        """Opens the lines, which were shut; returns the heads that may be handed out now."""
        self.shut = False
        free = [self._release(key) for key in list(self._barred) if key not in self._strays]
        return [head for head in free if head is not None]

    def _release(self, key: str) -> WaitingForKey | None:
        head = self._barred.pop(key, None)
        self.waiting -= head is not None
        return head

    def _stand(self, key: str, position: int, kind: Kind, expires_at: float = 0.0) -> bool:
        """Whether an item is its key's head; else it waits in its line from now on."""
        if position in self._heads:
            return True
        if key not in self._lines:
            self._lines[key] = None
            self._heads[position] = key
            if self.ranks is not None:
                self.ranks.stands(key, position)
            return True
        line = self._lines[key]
        if line is None:
            line = self._lines[key] = deque()
        one = WaitingForKey(position, kind, expires_at)
        if not line or line[-1].position < position:
            line.append(one)
        else:  # a redriven one goes before those that came after it
            insort(line, one, key=lambda other: other.position)
        if self.ranks is not None:
            self.ranks.follows(key, kind)
        self.waiting += 1
        self._stuck_waiting += key in self._stuck
        return False

    def is_busy(self, key: str, position: int) -> bool:
        """Whether another item of its key is not over."""
        return key in self._lines and position not in self._heads

    def is_head(self, position: int) -> bool:
        """Whether it is a key's head: an item whose order counts."""
        return position in self._heads

    def over(self, positions: Iterable[int]) -> list[WaitingForKey]:
        """Notes that items are settled; returns the items that follow them in their lines, the new heads, which may be
        handed out."""
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
                if self.ranks is not None:
                    self.ranks.over(key)
                continue
            following = line.popleft()
            self.waiting -= 1
            self._heads[following.position] = key
            if self.ranks is not None:
                self.ranks.leads(key, following.position, following.kind)
            free.append(following)
        return free

    def lifted(self, position: int, kind: Kind) -> Kind:
        """The kind under which an item of this kind runs: a head is as urgent as its key."""
        key = None if self.ranks is None else self._heads.get(position)
        return kind if key is None or self.ranks is None else self.ranks.lifted(key, kind)

    def risen(self) -> list[int]:
        """The heads of keys that became more urgent since the last call."""
        return [] if self.ranks is None else self.ranks.risen()

    def stuck(self, positions: Iterable[int]) -> None:
        """Notes positions that may not run for a while: they failed, or their cell is closed."""
        for position in positions:
            key = self._heads.get(position)
            if key is not None:
                self._stick(key)

    def _stick(self, key: str) -> None:
        if key not in self._stuck:
            self._stuck.add(key)
            self._stuck_waiting += len(self._lines[key] or ())

    def handed_out(self, positions: list[int], now: float) -> None:
        """Notes positions that are in flight from `now` on, a time that never goes back."""
        self._out.append((now, positions))

    def note_slow(self, now: float) -> None:
        """Counts every head that has been out for `PATIENCE` seconds as stuck."""
        while self._out and self._out[0][0] <= now - PATIENCE:
            self.stuck(self._out.popleft()[1])

    def rename(self, new_kind: Callable[[Kind], Kind]) -> None:
        """Files every item that waits under the kind that `new_kind` makes of its own: a function's own priority became
        known."""
        self._barred = {key: each._replace(kind=new_kind(each.kind)) for key, each in self._barred.items()}
        for line in self._lines.values():
            for index in range(len(line or ())):
                assert line is not None
                line[index] = line[index]._replace(kind=new_kind(line[index].kind))

    def positions(self) -> Iterator[int]:
        """Yields the positions of all items that wait."""
        for barred in self._barred.values():
            yield barred.position
        for line in self._lines.values():
            for each in line or ():
                yield each.position

    def longest(self) -> tuple[str, int, int] | None:
        """The key behind whose head most items wait, that head's position, and their number; None when none wait."""
        key, line = max(self._lines.items(), key=lambda one: len(one[1] or ()), default=("", None))
        if not line:
            return None
        return key, next(position for position, each in self._heads.items() if each == key), len(line)
