"""Lanes and kinds by number, as an engine's memory has them.

A *lane* here is one ⟨function, priority, collection⟩: the unit that a lease visits. A *kind* is a lane and a tenant.
"""

from __future__ import annotations

from collections import Counter

from ...model.demand import Cell
from ...model.priority import LOWEST_RANK
from ...model.workload import Kind


class Kinds:
    """Numbers of lanes and kinds. Numbers are only ever added, and never change their meaning."""

    def __init__(self) -> None:
        self.lanes: dict[int, tuple[str, int, str]] = {}  # lane → function, priority, collection
        self.kinds: dict[int, Kind] = {}
        self.cells: dict[int, Cell] = {}  # lane → its cell
        self.lane_of: dict[int, int] = {}
        self.numbers: dict[Kind, int] = {}
        self.lane_numbers: dict[tuple[str, int, str], int] = {}
        self.sizes: Counter[int] = Counter()  # lane → its kinds
        self._written: dict[int, tuple[str, int, str]] = {}  # lane → its address as stored

    def learn_lane(self, lane: int, address: tuple[str, int, str]) -> None:
        """Notes a lane's number. A priority lower than the lowest known one counts as the lowest."""
        function, rank, collection = self._written[lane] = address
        self.lanes[lane] = here = function, min(rank, LOWEST_RANK), collection
        self.cells[lane] = Cell(function, here[1])
        self.lane_numbers[address] = lane
        self.lane_numbers.setdefault(here, lane)

    def learn(self, number: int, lane: int, tenant: str) -> None:
        """Notes the number of a kind of a known lane."""
        self.kinds[number] = kind = Kind(*self.lanes[lane], tenant)
        self.lane_of[number] = lane
        self.numbers[Kind(*self._written[lane], tenant)] = number
        self.numbers.setdefault(kind, number)
        self.sizes[lane] += 1

    def forget_above(self, kind: int, lane: int) -> None:
        """Forgets all higher numbers: a transaction that was rolled back gave them out. They are the last ones
        learnt."""
        while self.kinds and (last := next(reversed(self.kinds))) > kind:
            here, its_lane = self.kinds.pop(last), self.lane_of.pop(last)
            self.sizes[its_lane] -= 1
            for each in {here, Kind(*self._written[its_lane], here.tenant)}:
                if self.numbers.get(each) == last:
                    del self.numbers[each]
        while self.lanes and (last := next(reversed(self.lanes))) > lane:
            for address in {self.lanes.pop(last), self._written.pop(last)}:
                if self.lane_numbers.get(address) == last:
                    del self.lane_numbers[address]
            del self.cells[last]
