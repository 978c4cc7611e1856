"""Fairness: turns between functions by deficit round robin (Shreedhar and Varghese), weighted, counted in items.

Each function in the ring gets a quantum in proportion to its weight; what it could not use because the room ran out it
keeps, together with its place; what it did not want is forfeited, so an idle function never saves up. Between two
functions that always have work, starts divided by weight differ by at most two quanta.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

#: Weights beyond these are taken as these: a turn must come within a hundred rounds.
LIGHTEST, HEAVIEST = 0.01, 100.0


class Turn:
    """What a function brings to the ring. `waits`: it is in the ring; who takes from it clears the mark when there
    is nothing left to take, or nothing that may start."""

    __slots__ = ("deficit", "waits", "weight")

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = clamp_weight(weight)
        self.deficit = 0.0
        self.waits = False


T = TypeVar("T", bound=Turn)


class Ring(Generic[T]):
    """Invariants: a turn is in the ring once, and exactly while it `waits`; only the head can be owed a whole item."""

    __slots__ = ("_turns",)

    def __init__(self) -> None:
        self._turns: deque[T] = deque()

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def weight(self) -> float:
        """Of everyone in the ring together."""
        return sum([turn.weight for turn in self._turns])

    def join(self, turn: T) -> None:
        """A function has work: last in the ring, owed nothing."""
        if not turn.waits:
            turn.waits = True
            turn.deficit = 0.0
            self._turns.append(turn)

    def clear(self) -> list[T]:
        """Empties the ring (the set of able workers changed) and returns who was in it."""
        turns = list(self._turns)
        self._turns.clear()
        for turn in turns:
            turn.waits = False
        return turns

    def round(self, room: int, quantum: float, take: Callable[[T, int], int]) -> int:
        """One turn for each until `room` items were given; `take(turn, n)` returns how many of n it took."""
        turns = self._turns
        given = 0
        for _ in range(len(turns)):
            if given >= room:
                break
            turn = turns[0]
            if turn.deficit < 1.0:
                turn.deficit += quantum * turn.weight
            offer = min(int(turn.deficit), room - given)
            if offer:
                count = take(turn, offer)
                given += count
                turn.deficit -= count
            if not turn.waits:
                turns.popleft()
            elif turn.deficit < 1.0:
                turns.rotate(-1)
        return given


def clamp_weight(weight: float) -> float:
    """A weight within its bounds; 0 means 1."""
    return min(HEAVIEST, max(LIGHTEST, weight or 1.0))
