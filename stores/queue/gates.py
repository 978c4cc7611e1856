"""Lanes and kinds that the closed cells of a demand shut."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.demand import Closed
from ...model.workload import Kind
from .kinds import Kinds


class ShutLanes:
    """The closed cells of a demand. What an operator drops is leased: the scheduler answers `dropped`."""

    def __init__(self, closed: Iterable[Closed]) -> None:
        self._whole: set[tuple[str, str]] = set()
        self._tenants: dict[tuple[str, str], set[str]] = {}
        for each in closed:
            if each.drop:
                continue
            if each.tenant:
                self._tenants.setdefault((each.function, each.collection), set()).add(each.tenant)
            else:
                self._whole.add((each.function, each.collection))

    def shut(self, function: str, collection: str) -> bool:
        """Whether nothing of the collection may be leased."""
        return (function, "") in self._whole or (function, collection) in self._whole

    def shut_kinds(self, kinds: Kinds, lane: int) -> frozenset[int]:
        """The kinds of a lane whose tenants are closed."""
        if not self._tenants:
            return frozenset()
        function, _, collection = kinds.lanes[lane]
        tenants = self._tenants.get((function, ""), set()) | self._tenants.get((function, collection), set())
        numbers = (kinds.numbers.get(Kind(*kinds.lanes[lane], tenant)) for tenant in tenants)
        return frozenset(number for number in numbers if number is not None)
