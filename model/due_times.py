"""Due times of a hand-out: of a few of its items, evenly spaced, since start delays are counted and not looked up.

Items of one hand-out were due one after another, so one speaks for its neighbours; up to `FEW` each speaks for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

#: Items of a hand-out whose due times are told at most.
FEW = 16

T = TypeVar("T")


def evenly_spaced(column: Sequence[T]) -> Sequence[T]:
    """Some values of a column, evenly spaced: at most `FEW`, and all where there are no more."""
    return column if len(column) <= FEW else column[:: -(-len(column) // FEW)]


def value_for(told: Sequence[T], index: int, size: int) -> T:
    """The value, of those that were told of `size` items, that speaks for the item at `index`."""
    return told[index * len(told) // size]
