"""Lanes and kinds by number."""

from __future__ import annotations

from tailrace.model.demand import Cell
from tailrace.model.workload import Kind
from tailrace.stores.queue.kinds import Kinds


def test_a_lane_of_a_level_that_there_is_not_is_of_the_lowest() -> None:
    # Given two lanes of which one was written where there are more levels
    kinds = Kinds()
    kinds.learn_lane(1, ("f", 7, "c"))
    kinds.learn(1, 1, "ann")
    kinds.learn_lane(2, ("f", 3, "c"))
    kinds.learn(2, 2, "ann")
    # Then both are asked for as what they are here, and what is new has one number
    assert kinds.cells == {1: Cell("f", 3), 2: Cell("f", 3)}
    assert kinds.kinds == {1: Kind("f", 3, "c", "ann"), 2: Kind("f", 3, "c", "ann")}
    assert kinds.numbers == {Kind("f", 7, "c", "ann"): 1, Kind("f", 3, "c", "ann"): 2}
    # And whichever is undone, the other one stays
    kinds.forget_above(1, 1)
    assert (kinds.numbers, kinds.lane_numbers) == ({Kind("f", 7, "c", "ann"): 1}, {("f", 7, "c"): 1})
    kinds.forget_above(0, 0)
    assert not (kinds.numbers or kinds.lane_numbers or kinds.cells or kinds.lane_of)
