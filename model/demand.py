"""Demand of a scheduler (its flow control): how many items of which cell a session may push, and which cells are
closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .workload import Kind


class Cell(NamedTuple):
    """One function at one priority: a lane's address."""

    function: str
    priority: int


class Closed(NamedTuple):
    """Items that would come back held now. Empty function, collection or tenant: every one of them.

    drop    they come back dropped instead
    probes  the function is clogged: so many items of the session may be out, one after another, to see whether it works
    since   wall clock seconds; 0: not known
    priority  it closes this rank and the lower ones (numbers from this one on), never a higher one
    exact   an empty collection or tenant means the one without a label, and not every one
    """

    function: str
    collection: str = ""
    tenant: str = ""
    reason: str = ""
    drop: bool = False
    probes: int = 0
    since: float = 0.0
    priority: int = 0
    exact: bool = False

    def covers(self, kind: Kind) -> bool:
        """Whether items of this kind are closed by it."""
        if self.function not in ("", kind.function) or kind.priority < self.priority:
            return False
        if self.exact:
            return (self.collection, self.tenant) == (kind.collection, kind.tenant)
        return self.collection in ("", kind.collection) and self.tenant in ("", kind.tenant)


@dataclass(slots=True)
class Demand:
    """The items that may be read now: at most `cells[c]` of each cell named, `total` in all, none of a closed cell.

    A cell not named gets nothing: its items stay in their source and cost no attempt.
    """

    cells: dict[Cell, int] = field(default_factory=dict)
    closed: frozenset[Closed] = frozenset()
    total: int = 0
    max_bytes: int = 1 << 20
