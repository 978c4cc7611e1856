"""Lanes and kinds that must not be leased, because a gate (pause switch) or a missing credit closed their cells."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.demand import Address, Closed, spared
from ...model.workload import Kind
from .kinds import Kinds

#: A function and a collection; None stands for all.
LaneAddress = tuple[str | None, str | None]


class ShutLanes:
    """The closed cells of a demand. An item that an operator drops is leased all the same, so that the scheduler can
    answer `dropped`, unless something at least as specific closes it. Exception: of a function that is closed as a
    whole, a single dropped tenant is not leased."""

    def __init__(self, closed: Iterable[Closed]) -> None:
        self._whole: dict[LaneAddress, int] = {}  # address → the most urgent closed priority
        self._tenants: dict[LaneAddress, dict[str, int]] = {}
        self._dropped: set[Address] = set()
        for each in closed:
            function, collection, tenant = each.which
            if each.drop:
                self._dropped.add(each.which)
                continue
            address = (function, collection)
            if tenant is None:
                self._whole[address] = min(each.priority, self._whole.get(address, each.priority))
                continue
            tenants = self._tenants.setdefault(address, {})
            tenants[tenant] = min(each.priority, tenants.get(tenant, each.priority))

    def shut(self, function: str, priority: int, collection: str) -> bool:
        """Whether nothing of the collection may be leased at this priority."""
        around = self._around(function, priority, collection)
        return bool(around) and not self._spared(around, function, collection, None)

    def shuts(self, kind: Kind) -> bool:
        """Whether nothing of this kind may be leased."""
        function, priority, collection, tenant = kind
        if self.shut(function, priority, collection):
            return True
        mine: list[Address] = [
            (*lane, tenant)
            for lane in _lanes(function, collection)
            if (tenants := self._tenants.get(lane)) and tenants.get(tenant, priority + 1) <= priority
        ]
        if not mine:
            return False
        mine += self._around(function, priority, collection)
        return not self._spared(mine, function, collection, tenant)

    def shut_kinds(self, kinds: Kinds, lane: int) -> frozenset[int]:
        """The kinds of a lane that are closed for their tenants."""
        if not self._tenants:
            return frozenset()
        function, priority, collection = kinds.lanes[lane]
        closed = [each for where in _lanes(function, collection) if (each := self._tenants.get(where))]
        tenants = {tenant for each in closed for tenant, highest in each.items() if priority >= highest}
        shut = [Kind(function, priority, collection, tenant) for tenant in tenants]
        if self._dropped:
            shut = [kind for kind in shut if self.shuts(kind)]
        numbers = (kinds.numbers.get(kind) for kind in shut)
        return frozenset(number for number in numbers if number is not None)

    def _around(self, function: str, priority: int, collection: str) -> list[Address]:
        """Addresses that are closed and that contain the whole collection."""
        whole = self._whole
        return [(*lane, None) for lane in _lanes(function, collection) if whole.get(lane, priority + 1) <= priority]

    def _spared(self, around: list[Address], function: str, collection: str, tenant: str | None) -> bool:
        """Whether a drop that is more specific than all the closed addresses in `around` covers the collection."""
        if not self._dropped:
            return False
        named: set[Address] = {(*lane, each) for lane in _lanes(function, collection) for each in (None, tenant)}
        return spared(named & self._dropped, around)


def _lanes(function: str, collection: str) -> tuple[LaneAddress, ...]:
    """The addresses that contain a lane: its function, the lane itself, and everything."""
    return (function, None), (function, collection), (None, None)
