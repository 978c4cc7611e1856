"""Demand of a scheduler (its flow control): how many items of which cell a session may push, and which cells are
closed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .workload import Kind

#: A function, a collection and a tenant; None: every one.
Address = tuple[str | None, str | None, str | None]


class Cell(NamedTuple):
    """One function at one priority: a lane's address."""

    function: str
    priority: int


class Closed(NamedTuple):
    """Items that would come back held now. Empty function, collection or tenant: every one of them.

    drop    they come back dropped instead; it is told where it decides, and goes before what is less specific
    probes  the function is clogged: so many items of the session may be out, one after another, to see whether it works
    since   wall clock seconds; 0: not known
    priority  it closes this rank and the lower ones (numbers from this one on), never a higher one
    exact   an empty collection or tenant means the one without a label, and not every one, but for labels that are
            said to be `all_collections` or `all_tenants`: those are empty, and mean every one
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
    all_collections: bool = False
    all_tenants: bool = False

    @property
    def which(self) -> Address:
        """The function, the collection and the tenant that it closes; None: every one."""
        collection, tenant = self.collection or None, self.tenant or None
        if self.exact:
            collection = None if self.all_collections else self.collection
            tenant = None if self.all_tenants else self.tenant
        return self.function or None, collection, tenant

    def covers(self, kind: Kind) -> bool:
        """Whether items of this kind are closed by it."""
        function, collection, tenant = self.which
        return (
            kind.priority >= self.priority
            and function in (None, kind.function)
            and collection in (None, kind.collection)
            and tenant in (None, kind.tenant)
        )


def addresses(kind: Kind) -> list[Address]:
    """All addresses that cover items of a kind, the nearest first."""
    labels: list[tuple[str | None, str | None]] = [
        (kind.collection, kind.tenant),
        (kind.collection, None),
        (None, kind.tenant),
        (None, None),
    ]
    return [(function, *each) for function in (kind.function, None) for each in labels]


def more_specific(one: Address, other: Address) -> bool:
    """Whether an address names all that another one names, and more."""
    return one != other and all(theirs in (None, ours) for ours, theirs in zip(one, other, strict=True))


def spared(dropped: Collection[Address], shut: Iterable[Address]) -> bool:
    """Whether some dropped cell is more specific than each closed one around the same items: those are pushed all the
    same, to be dropped (FL17)."""
    return all(any(more_specific(drop, each) for drop in dropped) for each in shut)


@dataclass(slots=True)
class Demand:
    """The items that may be read now: at most `cells[c]` of each cell named, `total` in all, none of a closed cell.

    A cell not named gets nothing: its items stay in their source and cost no attempt.
    """

    cells: dict[Cell, int] = field(default_factory=dict)
    closed: frozenset[Closed] = frozenset()
    total: int = 0
    max_bytes: int = 1 << 20
