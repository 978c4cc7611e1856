"""Lanes and kinds by number, as an engine's memory has them.

A *lane* here is one ⟨function, priority, collection⟩: what a lease visits. A kind is a lane and a tenant.
"""

from __future__ import annotations

from collections import Counter

from ...model.demand import Cell
from ...model.workload import Kind


class Kinds:
    """Numbers of lanes and kinds; they are only ever added, and mean the same for ever."""

    def __init__(self) -> None:
        self.lanes: dict[int, tuple[str, int, str]] = {}  # lane → function, priority, collection
        self.kinds: dict[int, Kind] = {}
        self.cells: dict[int, Cell] = {}  # lane → its cell
        self.lane_of: dict[int, int] = {}
        self.numbers: dict[Kind, int] = {}
        self.lane_numbers: dict[tuple[str, int, str], int] = {}
        self.sizes: Counter[int] = Counter()  # lane → its kinds

    def learn_lane(self, lane: int, address: tuple[str, int, str]) -> None:
        """A lane has this number."""
        self.lanes[lane] = address
        self.cells[lane] = Cell(address[0], address[1])
        self.lane_numbers[address] = lane

    def learn(self, number: int, lane: int, tenant: str) -> None:
        """A kind of a known lane has this number."""
        kind = Kind(*self.lanes[lane], tenant)
        self.kinds[number] = kind
        self.lane_of[number] = lane
        self.numbers[kind] = number
        self.sizes[lane] += 1

    def forget_above(self, kind: int, lane: int) -> None:
        """Numbers above these were given out by what was undone. They are the last ones that were learnt."""
        while self.kinds and (last := next(reversed(self.kinds))) > kind:
            self.sizes[self.lane_of[last]] -= 1
            del self.numbers[self.kinds.pop(last)], self.lane_of[last]
        while self.lanes and (last := next(reversed(self.lanes))) > lane:
            del self.lane_numbers[self.lanes.pop(last)], self.cells[last]
