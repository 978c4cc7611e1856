"""Lanes and kinds that the closed cells of a demand shut."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.demand import Closed
from ...model.workload import Kind
from .kinds import Kinds

#: A function and a collection; None: every one.
LaneAddress = tuple[str | None, str | None]


class ShutLanes:
    """The closed cells of a demand. What an operator drops is leased: the scheduler answers `dropped`."""

    def __init__(self, closed: Iterable[Closed]) -> None:
        self._whole: dict[LaneAddress, int] = {}  # each with the highest rank that is closed
        self._tenants: dict[LaneAddress, dict[str, int]] = {}
        for each in closed:
            if each.drop:
                continue
            function, collection, tenant = each.which
            address = (function, collection)
            if tenant is None:
                self._whole[address] = min(each.priority, self._whole.get(address, each.priority))
                continue
            tenants = self._tenants.setdefault(address, {})
            tenants[tenant] = min(each.priority, tenants.get(tenant, each.priority))

    def shut(self, function: str, priority: int, collection: str) -> bool:
        """Whether nothing of the collection may be leased at this priority."""
        for address in _addresses(function, collection):
            highest = self._whole.get(address)
            if highest is not None and priority >= highest:
                return True
        return False

    def shuts(self, kind: Kind) -> bool:
        """Whether nothing of this kind may be leased."""
        function, priority, collection, tenant = kind
        return self.shut(function, priority, collection) or any(
            each.get(tenant, priority + 1) <= priority for each in self._closed_tenants(function, collection)
        )

    def shut_kinds(self, kinds: Kinds, lane: int) -> frozenset[int]:
        """The kinds of a lane whose tenants are closed."""
        if not self._tenants:
            return frozenset()
        function, priority, collection = kinds.lanes[lane]
        closed = self._closed_tenants(function, collection)
        tenants = {tenant for each in closed for tenant, highest in each.items() if priority >= highest}
        numbers = (kinds.numbers.get(Kind(*kinds.lanes[lane], tenant)) for tenant in tenants)
        return frozenset(number for number in numbers if number is not None)

    def _closed_tenants(self, function: str, collection: str) -> list[dict[str, int]]:
        """The tenants that are closed there, each with the highest rank: here, in all of the function, everywhere."""
        some = [self._tenants.get(address) for address in _addresses(function, collection)]
        return [each for each in some if each]


def _addresses(function: str, collection: str) -> tuple[LaneAddress, ...]:
    """What lies around a lane: all of its function, itself, and everything."""
    return (function, None), (function, collection), (None, None)
