"""Priority inheritance of keys, as schedulers know it from locks: a key is as urgent as the most urgent item that waits
in its line, so that less urgent items before it, which must run first, do not keep it waiting."""

from __future__ import annotations

from ...model.priority import Priority
from ...model.workload import Kind

_LEVELS = len(Priority)


class KeyRanks:
    """Ranks of the keys of one partition. A kind does not change while it waits.

    Invariants: `_counts` has, of every key with a line in which something waits, how many of each level do; `_heads`
    has the head's position of every key with a line; `_risen` names keys that became more urgent since that was asked.
    """

    __slots__ = ("_counts", "_heads", "_risen")

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._heads: dict[str, int] = {}
        self._risen: set[str] = set()

    def stands(self, key: str, position: int) -> None:
        """Notes the position that is the first of its key."""
        self._heads[key] = position

    def follows(self, key: str, kind: Kind) -> None:
        """Notes that an item is the last in its key's line now."""
        before = self.of(key)
        counts = self._counts.setdefault(key, [0] * _LEVELS)
        counts[min(kind.priority, _LEVELS - 1)] += 1
        if kind.priority < before:
            self._risen.add(key)

    def leads(self, key: str, position: int, kind: Kind) -> None:
        """Notes that the first item that waited in the line has become the head."""
        self._heads[key] = position
        counts = self._counts[key]
        counts[min(kind.priority, _LEVELS - 1)] -= 1
        if not any(counts):
            del self._counts[key]

    def over(self, key: str) -> None:
        """Notes that a key has no line any more."""
        del self._heads[key]

    def of(self, key: str) -> int:
        """The rank of the most urgent item that waits; beyond every level when none does."""
        return next((rank for rank, count in enumerate(self._counts.get(key, ())) if count), _LEVELS)

    def lifted(self, key: str, kind: Kind) -> Kind:
        """The kind under which a head of this kind runs: as urgent as its key."""
        rank = self.of(key)
        return kind._replace(priority=rank) if rank < kind.priority else kind

    def risen(self) -> list[int]:
        """The heads of keys that became more urgent since the last call."""
        risen, self._risen = self._risen, set()
        return [self._heads[key] for key in risen if key in self._heads]
