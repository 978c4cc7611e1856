"""Fairness: turns between functions by deficit round robin (Shreedhar and Varghese), weighted, counted in items.

Each function in the ring gets a quantum in proportion to its weight; what it could not use because the room ran out it
keeps, together with its place; what it did not want is forfeited, so an idle function never saves up. A quantum is
chosen when a round begins and holds until everyone had a turn in it, however often the room runs out in between; so
between two functions that always have work, starts divided by weight differ by at most one quantum and two items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

#: Weights beyond these are taken as these: a turn must come within a hundred rounds.
LIGHTEST, HEAVIEST = 0.01, 100.0

#: A turn may be this many items even when room is scarce, so that picking costs little, but no more than this part of
#: what the pools can hold, so that a few slow functions in a small installation still alternate item by item.
CHUNK = 16.0
CHUNK_PART = 1 / 128


class Turn:
    """The place of a function in the ring. `waits`: it is in the ring; who takes from it clears the mark when there is
    nothing left to take, or nothing that may start."""

    __slots__ = ("deficit", "waits", "weight")

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = clamp_weight(weight)
        self.deficit = 0.0
        self.waits = False


T = TypeVar("T", bound=Turn)


class Ring(Generic[T]):
    """The ring of functions that wait for their turn. Invariants: a turn is in the ring once, and exactly while it
    `waits`; the first `_left` have not finished their turn in this round; only the head can be in the middle of it
    (`_cut`)."""

    __slots__ = ("_cut", "_left", "_quantum", "_turns")

    def __init__(self) -> None:
        self._turns: deque[T] = deque()
        self._left = 0
        self._quantum = 0.0
        self._cut = False

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[T]:
        return iter(self._turns)

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
        self._left = 0
        self._cut = False
        for turn in turns:
            turn.waits = False
        return turns

    def round(self, room: int, quantum: float, take: Callable[[T, int], int]) -> int:
        """Goes on with the round, or begins one with this quantum, until everyone had a turn or `room` items were
        given. `take(turn, n)` returns how many of n it took. Returns how many were given."""
        turns = self._turns
        if not self._left:
            self._left = len(turns)
            self._quantum = quantum
        quantum = self._quantum
        given = 0
        while self._left and given < room:
            turn = turns[0]
            if not self._cut:
                turn.deficit += quantum * turn.weight
            offer = min(int(turn.deficit), room - given)
            if offer:
                count = take(turn, offer)
                given += count
                turn.deficit -= count
            self._cut = turn.waits and turn.deficit >= 1.0
            if self._cut:
                break  # the room ran out in the middle of its turn
            self._left -= 1
            if turn.waits:
                turns.rotate(-1)
            else:
                turns.popleft()
        return given


def quantum(share: float, capacity: int) -> float:
    """Items for a turn of weight 1: an even share of the room there is, or a chunk of what the pools can hold."""
    return max(1.0, share, min(CHUNK, capacity * CHUNK_PART))


def clamp_weight(weight: float) -> float:
    """A weight within its bounds; 0 means 1."""
    return min(HEAVIEST, max(LIGHTEST, weight or 1.0))
